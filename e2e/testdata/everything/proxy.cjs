const { setGlobalDispatcher, EnvHttpProxyAgent } = require("undici")
setGlobalDispatcher(new EnvHttpProxyAgent()) // as newer versions of Node do by themselves
