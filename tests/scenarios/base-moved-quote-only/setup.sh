git tag seen
sed -i s/four/vier/ a.txt
git commit -qam later
