export { reapedFolder, reapLater } from '../../apps/chaos/servers/reaper.js'
