import { randomUUID } from 'node:crypto'
import { ifExists, NoNodeError, type Stat, type ZooKeeper } from '../index.js'
import type { ForceRelease, Inspect, RequestReport } from 'signalbox/engine'
import type { BoxSession } from './box-session.js'
import { positionOf, type Contender } from './contenders.js'
import { decodeKey, guidOf, type NodePaths } from './names.js'
import { parseNode, type NodeText } from './node-text.js'
import { queueOf } from './queue.js'

/** A node in the queue of a key, as any client sees it. */
interface SeenNode {
  readonly key: string
  readonly name: string
  /** The paths of the node and its twins. */
  readonly paths: readonly string[]
  readonly contender: Contender
  /** Its parsed data; undefined for a node of another library. */
  readonly text: NodeText | undefined
  readonly data: string
  readonly number: number
  /** Time of its creation, by the server's clock, in milliseconds since 1970. */
  readonly since: number
  readonly isFree: boolean
}

/** The operations for operators: inspects the requests of all boxes, and revokes grants. */
export class Admin {
  readonly #session: BoxSession
  readonly #paths: NodePaths

  constructor(session: BoxSession, paths: NodePaths) {
    this.#session = session
    this.#paths = paths
  }

  inspect({ prefix, exact = false }: Inspect): Promise<readonly RequestReport[]> {
    return this.#session.run(async client => {
      if (exact) await client.sync(this.#paths.locks)
      const keys = exact ? [prefix] : await this.#keys(client, prefix)
      const nodes = await this.#nodesOf(client, keys)
      // A request on several keys is granted when it is free on all of them.
      const all = await this.#withOthers(client, nodes)
      const granted = new Set([...byRequest(all).values()].filter(isGranted).flat())
      return nodes.map(node => reportOf(node, granted.has(node)))
    })
  }

  /** Returns the leader's clock, from a node that is created and deleted in one step, in milliseconds since 1970. */
  time(): Promise<number> {
    return this.#session.run(async client => {
      const path = `${this.#paths.sessions}/clock-${randomUUID()}`
      // Servers before 3.9 send no times of a node that a multi creates.
      const [, changed] = await client.transaction().create(path).setData(path, '').delete(path).commit()
      return (changed as Stat).mtime
    })
  }

  async forceRelease({ key, number }: ForceRelease): Promise<boolean> {
    const client = await this.#session.get()
    await client.sync(this.#paths.locks)
    const found = (await this.#nodesOf(client, [key])).find(node => node.number === number)
    if (!found) return false
    const all = await this.#withOthers(client, [found])
    const request = [...byRequest(all).values()].find(nodes => nodes.includes(found))
    if (!request || !isGranted(request)) return false
    return this.#deleteRequest(client, request)
  }

  /** Returns the number of requests that the session had. */
  async revoke(session: string): Promise<number> {
    const client = await this.#session.get()
    const nodes = await this.#nodesOf(client, await this.#keys(client, ''))
    const requests = byRequest(nodes.filter(({ text }) => text?.session === session))
    let count = 0
    for (const request of requests.values()) if (await this.#deleteRequest(client, request)) count++
    return count
  }

  /** Deletes the nodes of a request and notifies its session. */
  async #deleteRequest(client: ZooKeeper, nodes: readonly SeenNode[]): Promise<boolean> {
    const transaction = client.transaction()
    for (const path of nodes.flatMap(({ paths }) => paths)) transaction.delete(path)
    const outcome = await transaction.outcome()
    if (!outcome.done && !(outcome.error instanceof NoNodeError)) throw outcome.error
    const session = nodes[0]!.text?.session
    // A session that has ended needs no notice.
    if (session !== undefined) await ifExists(client.setData(this.#paths.session(session), ''))
    return outcome.done
  }

  /** All keys with a queue that begin with `prefix`. */
  async #keys(client: ZooKeeper, prefix: string): Promise<string[]> {
    const { children } = await client.getChildren(this.#paths.locks, { linearizable: true })
    const keys = children.map(decodeKey)
    return keys.filter(key => key?.startsWith(prefix) === true).sort() as string[]
  }

  /** The nodes in the queues of these keys, each queue in its order. */
  async #nodesOf(client: ZooKeeper, keys: readonly string[]): Promise<SeenNode[]> {
    const queues = await Promise.all(keys.map(key => this.#queueOf(client, key)))
    return queues.flat()
  }

  /** The nodes in the queue of a key, in order, except those that are deleted in the meantime. */
  async #queueOf(client: ZooKeeper, key: string): Promise<SeenNode[]> {
    const parent = this.#paths.lock(key)
    const found = await ifExists(client.getChildren(parent))
    const contenders = await queueOf(client, parent, found?.children ?? [])
    const nodes = await Promise.all(
      contenders.map(async (contender, index): Promise<SeenNode | undefined> => {
        const { name, twins } = contender
        const paths = [name, ...twins].map(each => `${parent}/${each}`)
        const node = await ifExists(client.getData(paths[0]!))
        if (!node) return undefined
        const text = parseNode(node.data)
        return {
          key,
          name,
          paths,
          contender,
          text,
          data: node.data.toString(),
          number: text?.number ?? Number(node.stat.czxid),
          since: node.stat.ctime,
          isFree: positionOf(contenders, index).state === 'free',
        }
      }),
    )
    return nodes.filter(node => node !== undefined)
  }

  /** Adds the nodes of the same requests in the queues of other keys. */
  async #withOthers(client: ZooKeeper, nodes: readonly SeenNode[]): Promise<SeenNode[]> {
    const requests = new Set(nodes.map(({ name }) => guidOf(name)))
    const known = [...nodes]
    // First the nodes that list all claims of a request, then the nodes of those claims.
    for (const named of [
      ({ first }: NodeText) => first ?? [],
      ({ claims }: NodeText) => claims.map(({ key }) => key),
    ]) {
      const keys = new Set(known.flatMap(({ text }) => (text ? named(text) : [])))
      for (const { key } of known) keys.delete(key)
      const further = await this.#nodesOf(client, [...keys])
      for (const node of further) if (requests.has(guidOf(node.name))) known.push(node)
    }
    return known
  }
}

/** Groups nodes by request: by the GUID in their names, or by their path if there is none. */
function byRequest(nodes: readonly SeenNode[]): Map<string, SeenNode[]> {
  const requests = new Map<string, SeenNode[]>()
  for (const node of nodes) {
    const request = guidOf(node.name) ?? node.paths[0]!
    const others = requests.get(request)
    if (others) others.push(node)
    else requests.set(request, [node])
  }
  return requests
}

/** Whether these nodes hold all claims of their request. */
function isGranted(nodes: readonly SeenNode[]): boolean {
  // The first node lists all claims. A request of another library has a single node.
  const first = nodes.find(({ text }) => text?.first === undefined)
  if (!first) return false
  const claims = first.text?.claims.length ?? 1
  return nodes.length >= claims && nodes.every(({ isFree }) => isFree)
}

function reportOf(node: SeenNode, isHeld: boolean): RequestReport {
  const { key, text, data, number, since, contender } = node
  const { mode, permits, max } = contender
  return {
    key,
    session: text?.session ?? node.name,
    host: text?.host ?? data,
    pid: text?.pid ?? 0,
    label: text?.label,
    claim: mode === 'permits' ? { key, mode, permits, max } : { key, mode },
    phase: isHeld ? 'held' : 'waiting',
    number: isHeld ? number : 0,
    age: Math.max(Date.now() - since, 0),
    expiresIn: text?.lease ?? 0,
  }
}
