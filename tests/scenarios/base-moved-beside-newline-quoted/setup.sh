git tag seen
sed -i "2s/.*/# x/" a.py
git commit -qam later
