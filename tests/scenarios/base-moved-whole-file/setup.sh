git tag seen
sed -i s/^25$/x/ a.txt
git commit -qam later
