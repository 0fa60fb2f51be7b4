git tag seen
sed -i 1i0 a.txt
git commit -qam later
