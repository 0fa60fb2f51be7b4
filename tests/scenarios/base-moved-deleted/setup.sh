git tag seen
echo b > b.txt
git add b.txt
git rm -q a.txt
git commit -qam later
