export { Proxy, type Fate } from '../../apps/chaos/servers/proxy.js'
