git tag seen
sed -i s/two/2/ a.txt
sed -i s/seven/7/ a.txt
git commit -qam later
