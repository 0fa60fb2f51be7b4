git tag seen
sed -i "2s/.*/# x/" a.txt
git commit -qam later
