ln -s docs link
git add . && git commit -qm link
