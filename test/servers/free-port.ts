export { freePort } from '../../apps/chaos/servers/free-port.js'
