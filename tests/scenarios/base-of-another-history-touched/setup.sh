git checkout -q --orphan stray
echo six >> a.txt
git commit -qam stray
git checkout -q main
