export { ServerProcess } from '../../apps/chaos/servers/server-process.js'
