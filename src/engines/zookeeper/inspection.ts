import { NoNodeError, type ZooKeeper } from './client/index.js'
import type { RequestReport } from '../../engine/contract.js'
import { placeOf } from './contenders.js'
import { decodeKey, guidOf, type Places } from './names.js'
import { queueOf } from './queue.js'
import { parseNode, type NodeText } from './node-text.js'

/** A node in the queue of a key, as somebody who looks from outside sees it. */
export interface SeenNode {
  readonly key: string
  /** Of the node and of its twins. */
  readonly paths: readonly string[]
  readonly name: string
  /** What it tells; undefined for one of another library. */
  readonly text: NodeText | undefined
  /** What it tells, as it is. */
  readonly data: string
  readonly number: number
  readonly since: number
  readonly isFree: boolean
  readonly permits: {
    readonly mode: 'exclusive' | 'shared' | 'permits'
    readonly permits: number
    readonly max: number
  }
}

/** The nodes in the queues of these keys, each queue in its order. What vanishes meanwhile is left out. */
export async function nodesOf(
  client: ZooKeeper,
  places: Places,
  keys: readonly string[],
): Promise<SeenNode[]> {
  const queues = await Promise.all(keys.map(key => nodesOfKey(client, places, key)))
  return queues.flat()
}

/** All keys with a queue that begin with `prefix`. */
export async function keysOf(client: ZooKeeper, places: Places, prefix: string): Promise<string[]> {
  const { children } = await client.getChildren(places.locks, { linearizable: true })
  const keys = children.map(decodeKey)
  return keys.filter(key => key?.startsWith(prefix) === true).sort() as string[]
}

/** The nodes of one request, by what all their names have in common, or by their own name where that is not known. */
export function byRequest(nodes: readonly SeenNode[]): Map<string, SeenNode[]> {
  const requests = new Map<string, SeenNode[]>()
  for (const node of nodes) {
    const id = guidOf(node.name) ?? node.paths[0]!
    const others = requests.get(id)
    if (others) others.push(node)
    else requests.set(id, [node])
  }
  return requests
}

/** Whether a request has all that it claims, as far as these nodes tell. */
export function isGranted(nodes: readonly SeenNode[]): boolean {
  // The first one tells how many there are; one of another library is alone.
  const first = nodes.find(({ text }) => text?.first === undefined)
  if (!first) return false
  const claims = first.text?.claims.length ?? 1
  return nodes.length >= claims && nodes.every(({ isFree }) => isFree)
}

/** Nodes, and those of the same requests that are in the queues of other keys. */
export async function withOthers(
  client: ZooKeeper,
  places: Places,
  nodes: readonly SeenNode[],
): Promise<SeenNode[]> {
  const requests = new Set(nodes.map(({ name }) => guidOf(name)))
  const known = [...nodes]
  // First those that tell all claims, then those for what they tell.
  for (const named of [
    ({ first }: NodeText) => first ?? [],
    ({ claims }: NodeText) => claims.map(({ key }) => key),
  ]) {
    const keys = new Set(known.flatMap(({ text }) => (text ? named(text) : [])))
    for (const { key } of known) keys.delete(key)
    const further = await nodesOf(client, places, [...keys])
    known.push(...further.filter(({ name }) => requests.has(guidOf(name))))
  }
  return known
}

/** Who holds and waits, for keys that begin with `prefix`. */
export async function reports(client: ZooKeeper, places: Places, prefix: string): Promise<RequestReport[]> {
  const nodes = await nodesOf(client, places, await keysOf(client, places, prefix))
  // Whether a request over several keys is granted is decided on the others, too.
  const all = await withOthers(client, places, nodes)
  const granted = new Set<SeenNode>()
  for (const request of byRequest(all).values())
    if (isGranted(request)) for (const node of request) granted.add(node)
  return nodes.map(node => reportOf(node, granted.has(node)))
}

function reportOf(node: SeenNode, isHeld: boolean): RequestReport {
  const { key, text, data, number, since, permits } = node
  const { mode, permits: taken, max } = permits
  return {
    key,
    session: text?.session ?? node.name,
    host: text?.host ?? data,
    pid: text?.pid ?? 0,
    label: text?.label,
    claim: mode === 'permits' ? { key, mode, permits: taken, max } : { key, mode },
    phase: isHeld ? 'held' : 'waiting',
    number: isHeld ? number : 0,
    age: Math.max(Date.now() - since, 0),
    expiresIn: text?.lease ?? 0,
  }
}

async function nodesOfKey(client: ZooKeeper, places: Places, key: string): Promise<SeenNode[]> {
  const parent = places.lock(key)
  let contenders
  try {
    contenders = await queueOf(client, parent, (await client.getChildren(parent)).children)
  } catch (error) {
    if (error instanceof NoNodeError) return []
    throw error
  }
  const nodes = await Promise.all(
    contenders.map(async ({ name, twins, mode, permits, max }, index): Promise<SeenNode | undefined> => {
      const path = `${parent}/${name}`
      try {
        const { data, stat } = await client.getData(path)
        const text = parseNode(data)
        return {
          key,
          paths: [path, ...twins.map(twin => `${parent}/${twin}`)],
          name,
          text,
          data: data.toString(),
          number: text?.number ?? Number(stat.czxid),
          since: stat.ctime,
          isFree: placeOf(contenders, index).state === 'free',
          permits: { mode, permits, max },
        }
      } catch (error) {
        if (error instanceof NoNodeError) return undefined
        throw error
      }
    }),
  )
  return nodes.filter(node => node !== undefined)
}
