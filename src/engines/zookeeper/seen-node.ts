import type { ZooKeeper } from './client/index.js'
import { ifThere } from './client/settled.js'
import { positionOf, type Contender } from './contenders.js'
import type { Places } from './names.js'
import { parseNode, type NodeText } from './node-text.js'
import { queueOf } from './queue.js'

/** A node in the queue of a key, as any client sees it. */
export interface SeenNode {
  readonly key: string
  readonly name: string
  /** Of the node and of its twins. */
  readonly paths: readonly string[]
  readonly contender: Contender
  /** What it tells; undefined for a node of another library. */
  readonly text: NodeText | undefined
  /** What it tells, as it is. */
  readonly data: string
  readonly number: number
  /** Milliseconds since 1970, by the server's clock. */
  readonly since: number
  readonly isFree: boolean
}

/** The nodes in the queue of a key, in their order. What vanishes meanwhile is left out. */
export async function nodesOfKey(client: ZooKeeper, places: Places, key: string): Promise<SeenNode[]> {
  const parent = places.lock(key)
  const found = await ifThere(client.getChildren(parent))
  const contenders = await queueOf(client, parent, found?.children ?? [])
  const nodes = await Promise.all(
    contenders.map(async (contender, index): Promise<SeenNode | undefined> => {
      const { name, twins } = contender
      const path = `${parent}/${name}`
      const node = await ifThere(client.getData(path))
      if (!node) return undefined
      const text = parseNode(node.data)
      return {
        key,
        name,
        paths: [path, ...twins.map(twin => `${parent}/${twin}`)],
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
