git tag seen
mkdir new
echo b > new/b.txt
git add new
git commit -qam later
