git checkout -q --orphan stray
git commit -qm stray
git checkout -q main
