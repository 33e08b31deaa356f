import { NoNodeError, type ZooKeeper } from 'signalbox-zookeeper'
import { contendersOf, type Contender } from './contenders.js'
import { parseNode } from './node-text.js'

/** The number at which a server's count of children ends. */
const LAST = 2 ** 31 - 1

/**
 * The contenders among a node's children, the first one first.
 *
 * A server that has given the last number gives it again and again (seen with 3.9), and numbers below 0 to creations
 * that are under way together (by its source; not seen). From there on the order is that of the transactions. A node
 * that vanishes meanwhile is left out, and one that comes meanwhile comes later.
 */
export async function queueOf(
  client: ZooKeeper,
  parent: string,
  children: readonly string[],
): Promise<readonly Contender[]> {
  const contenders = contendersOf(children)
  if (!contenders.some(({ sequence }) => isPastEnd(sequence))) return contenders
  const numbered = await Promise.all(
    contenders.map(async contender => ({
      contender,
      number: await numberOf(client, `${parent}/${contender.name}`),
    })),
  )
  return numbered
    .filter(({ number }) => number !== undefined)
    .sort((a, b) => a.number! - b.number!)
    .map(({ contender }) => contender)
}

/** Whether a number says nothing about the order any more. */
function isPastEnd(sequence: number): boolean {
  return sequence === LAST || sequence < 0
}

/** The transaction that a node stands for: the one that created it, or the node that it has replaced. */
async function numberOf(client: ZooKeeper, path: string): Promise<number | undefined> {
  try {
    const { data, stat } = await client.getData(path)
    return parseNode(data)?.number ?? Number(stat.czxid)
  } catch (error) {
    if (error instanceof NoNodeError) return undefined
    throw error
  }
}
