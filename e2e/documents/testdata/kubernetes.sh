# kubectl sends the requests that the document describes, but one: it has no --raw for a PATCH.
call() {
	name=$1
	shift
	if kubectl --server https://kube.example --token placeholder "$@" </dev/null >out 2>err &&
		[ "$(cat out)" = '{}' ]; then
		echo "ok client $name"
	else
		echo "failed client $name"
		cat out err
	fi
}
post() {
	printf %s "$3" >"/tmp/$1.json"
	call "$1" create --raw "$2" -f "/tmp/$1.json"
}
HOME=/tmp
export HOME
pods=/api/v1/namespaces/x/pods
deployments=/apis/apps/v1/namespaces/x/deployments
call version get --raw /version/
call namespaces get --raw '/api/v1/namespaces?limit=5&labelSelector=a%20in%20%28b%2C%20c%29'
call pod get --raw $pods/p
call log get --raw "$pods/p/log?tailLines=5&follow=false"
call deployments get --raw $deployments
call remove delete --raw "$pods/p?gracePeriodSeconds=0"
post namespace /api/v1/namespaces '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x","labels":{"a":"b"}}}'
post run $pods '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
  "spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}]}]}}'
post deploy $deployments '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":2,
  "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
  "spec":{"containers":[{"name":"c","image":"i"}]}}}}'
