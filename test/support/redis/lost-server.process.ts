/**
 * Works on Redis over a client package, with connections of its own or with a client that it passes to its boxes. Kills
 * the server, prints `done`, and must then end by itself.
 */
import { open, type Box } from '../../../src/index.js'
import { openBy } from './box-ways.js'
import { clientPackages } from './client-packages.js'

const [url, pid, name, way] = process.argv.slice(2)
const { client, connectWith } = clientPackages.find(each => each.name === name)!
const given = way === 'given' ? await client(url!) : undefined

function openBox(): Promise<Box> {
  return given ? open({ redis: given.client }) : openBy({ connectWith }, url!)
}

const box = await openBox()
const other = await openBox()
await box.mutex('held').acquire()
// A failed wait has opened the connection for messages.
await other
  .mutex('held')
  .acquire({ wait: 50 })
  .catch(() => undefined)
process.kill(Number(pid), 'SIGKILL')
// Long enough for several failed attempts to connect.
await new Promise(resolve => setTimeout(resolve, 500))
// The one that received messages stays open; its owner ends an existing client.
await box.close()
given?.close()
console.log('done')
