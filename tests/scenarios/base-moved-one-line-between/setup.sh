git tag seen
sed -i s/four/vier/ a.txt
sed -i 1i\\zero a.txt
git commit -qam later
