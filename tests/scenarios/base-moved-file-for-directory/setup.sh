git tag seen
echo file > new
git add new
git commit -qam later
