# Makes each call of the project's calls directory by a command and by the run API, and runs a client if there is one.
# A line of the output is "ok DOOR NAME", or "failed DOOR NAME" and what came.
tool=$1 client=${2-}
result() {
	if [ "$3" = ok ]; then echo "ok $1 $2"; else
		echo "failed $1 $2"
		cat out err 2>/dev/null
		echo
	fi
}
for file in calls/*.args; do
	name=${file#calls/} name=${name%.args}
	if "$tool" "$name" --args - <"$file" >out 2>err; then how=ok; else how=failed; fi
	result command "$name" $how
	how=failed
	if curl -sS -H "Authorization: Bearer $AILERON_TOKEN" -d "@calls/$name.call" \
		"$AILERON_API_URL/connector-operations/run" >out 2>err && grep -q '"upstream_status":200' out; then how=ok; fi
	result api "$name" $how
done
case $client in
'') ;;
*.sh) sh "$client" ;;
*) node "$client" ;;
esac
