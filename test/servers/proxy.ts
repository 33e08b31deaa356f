export { Proxy } from '../../apps/chaos/servers/proxy.js'
