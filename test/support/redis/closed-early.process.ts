/**
 * Opens boxes on Redis over every kind of connection of a client package. Closes each while its first waiting call
 * opens connections. Prints `done`, and must then end by itself. Arguments: the package, and the URLs of a server, of a
 * Sentinel's master and of a cluster.
 */
import { createServer, type AddressInfo } from 'node:net'
import { Proxy } from '../../../apps/chaos/servers/proxy.js'
import { open, type Box } from '../../../src/index.js'
import { boxWays, type BoxWay } from './box-ways.js'
import { clientPackages } from './client-packages.js'

const [name, serverUrl, sentinelUrl, clusterUrl] = process.argv.slice(2) as [string, string, string, string]
const ways = boxWays.filter(way => way.name.startsWith(`${name},`))
const own = ways[0]!

/** Accepts connections and never answers. */
const silent = createServer(socket => {
  socket.unref()
  socket.on('error', () => undefined)
})
await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
silent.unref()
const { port } = silent.address() as AddressInfo

/** The key of this process, because another one may run at the same time. */
const key = `held by ${process.pid}`
const holder = await open(serverUrl)
await holder.mutex(key).acquire()
const clusterHolder = await open(clusterUrl)
await clusterHolder.mutex(key).acquire()

/** Times from a waiting call to the close of its box, in milliseconds; undefined for at once. */
const delays = [undefined, 0, 1, 5, 20]

async function closeAfter(box: Box, after: number | undefined): Promise<void> {
  const over = box
    .mutex(key)
    .acquire()
    .catch(() => undefined)
  if (after !== undefined) await new Promise(resolve => setTimeout(resolve, after))
  await box.close()
  await over
}

async function closeEach({ open: openBox }: BoxWay, url: string): Promise<void> {
  for (const after of delays) {
    await using opened = await openBox(url)
    await closeAfter(opened.box, after)
  }
}

/** @param silence silences the network once a box is open */
async function closeBehind(
  { open: openBox }: BoxWay,
  silence: (network: Proxy) => void,
  after: number | undefined,
): Promise<void> {
  const network = await Proxy.start(Number(new URL(serverUrl).port))
  await using opened = await openBox(`redis://${network.host}:${network.port}`)
  silence(network)
  await closeAfter(opened.box, after)
}

/** Open connections continue. New ones lead to a server that never answers. */
function ofNewConnections(network: Proxy): void {
  network.target = port
}

function ofAll(network: Proxy): void {
  network.replies = 'lose'
}

async function onGivenCluster(): Promise<void> {
  const nodes = clusterUrl.replace(/^.*:\/\//, '').split(',')
  const places = nodes.map(node => ({ host: node.split(':')[0]!, port: Number(node.split(':')[1]) }))
  for (const after of delays) {
    const user = await clientPackages.find(each => each.name === name)!.cluster(places)
    await closeAfter(await open({ redis: user.client }), after)
    user.close()
  }
}

await Promise.all([
  ...ways.map(way => closeEach(way, serverUrl)),
  ...ways.flatMap(way => [undefined, 5].map(after => closeBehind(way, ofNewConnections, after))),
  closeBehind(own, ofAll, 0),
  ...[sentinelUrl, clusterUrl].map(url => closeEach(own, url)),
  onGivenCluster(),
  own.open(`redis://127.0.0.1:${port}`).catch(() => undefined),
])
await Promise.all([holder.close(), clusterHolder.close()])
console.log('done')
