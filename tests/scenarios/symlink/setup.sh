ln -s a.txt link.txt
git add . && git commit -qm link
