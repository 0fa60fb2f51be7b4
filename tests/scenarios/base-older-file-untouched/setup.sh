git tag seen
echo B > b.txt
git commit -qam later
