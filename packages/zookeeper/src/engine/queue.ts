import { NoNodeError, type ZooKeeper } from '../index.js'
import { endOfTick } from 'signalbox/engine'
import { contendersOf, type Contender } from './contenders.js'
import { parseNode } from './node-text.js'

/** The last number that a server assigns to children. */
const LAST = 2 ** 31 - 1

/**
 * Returns the contenders among a node's children, oldest first.
 *
 * A server that has assigned the last number assigns it again to every further child (seen with 3.9), and negative ones
 * to concurrent creations (by its source; not seen). Then the order is that of the transactions. Omits nodes that are
 * deleted in the meantime; nodes that are created in the meantime come later.
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

/** Whether a number no longer shows the order. */
function isPastEnd(sequence: number): boolean {
  return sequence === LAST || sequence < 0
}

/** The ID of the transaction that created a node, or created the node that it has replaced. */
async function numberOf(client: ZooKeeper, path: string): Promise<number | undefined> {
  try {
    const { data, stat } = await client.getData(path)
    return parseNode(data)?.number ?? Number(stat.czxid)
  } catch (error) {
    if (error instanceof NoNodeError) return undefined
    throw error
  }
}

/** Reads queues. Callers that read the same queue in one tick share one read. */
export class QueueReads {
  readonly #reads = new Map<
    string,
    { readonly client: ZooKeeper; readonly queue: Promise<readonly Contender[]> }
  >()

  /**
   * Returns the contenders among a node's children, oldest first, as of the end of this tick or later.
   * @throws NoNodeError if the node does not exist
   */
  read(client: ZooKeeper, parent: string): Promise<readonly Contender[]> {
    const shared = this.#reads.get(parent)
    if (shared?.client === client) return shared.queue
    const queue = new Promise<void>(endOfTick).then(async () => {
      if (this.#reads.get(parent)?.queue === queue) this.#reads.delete(parent)
      return queueOf(client, parent, (await client.getChildren(parent)).children)
    })
    this.#reads.set(parent, { client, queue })
    return queue
  }
}
