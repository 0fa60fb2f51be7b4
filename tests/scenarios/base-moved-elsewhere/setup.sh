git tag seen
printf "one\nTWO\nthree\nfour\nfive\nsix\nseven\ntwo\n" > a.txt
git commit -qam later
