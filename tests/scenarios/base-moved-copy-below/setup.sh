git tag seen
printf "one\ntwo\nTHREE\nfour\nfive\nsix\nseven\ntwo\nthree\n" > a.txt
git commit -qam later
