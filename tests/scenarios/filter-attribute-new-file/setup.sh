echo '*.dat filter=lfs' > .gitattributes
git add . && git commit -qm attributes
