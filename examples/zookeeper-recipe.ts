/**
 * The lock recipe of ZooKeeper's documentation, with policies of cockatiel around single steps of the client. In your
 * code, use `box.mutex`, which also detects the loss of a lock and has tokens.
 *
 *     ZOOKEEPER_HOSTS=localhost:2181 node zookeeper-recipe.js
 */
import { randomUUID } from 'node:crypto'
import { ExponentialBackoff, fallback, handleType, retry, timeout, TimeoutStrategy } from 'cockatiel'
import {
  ConnectionLossError,
  NodeExistsError,
  NoNodeError,
  NotSentError,
  oneEvent,
  ZooKeeper,
} from 'signalbox-zookeeper'

// Retries requests even if they may have been applied: each step first checks whether they were.
const retrying = retry(handleType(ConnectionLossError).orType(NotSentError), {
  maxAttempts: 20,
  backoff: new ExponentialBackoff({ initialDelay: 20, maxDelay: 500 }),
})
const ignoreExisting = fallback(handleType(NodeExistsError), undefined)
const ignoreMissing = fallback(handleType(NoNodeError), undefined)

async function withLock<T>(zk: ZooKeeper, folder: string, wait: number, task: () => Promise<T>): Promise<T> {
  const guid = randomUUID()
  const isOwn = (name: string) => name.startsWith(guid)

  async function queue(): Promise<string[]> {
    const { children } = await zk.getChildren(folder, { linearizable: true })
    return children.sort((one, other) => (one.slice(-10) < other.slice(-10) ? -1 : 1))
  }

  // Creates the node unless an earlier attempt did. A linearizable read syncs first. If it does not show a request of a
  // lost connection, that request will never be applied.
  async function enter(attempt: number, signal: AbortSignal): Promise<string> {
    const known = attempt > 0 ? (await queue()).find(isOwn) : undefined
    if (known !== undefined) return known
    signal.throwIfAborted()
    const { path } = await zk.create(`${folder}/${guid}-`, '', { ephemeral: true, sequential: true })
    return path.slice(folder.length + 1)
  }

  async function turn(own: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      const waiting = await queue()
      if (!waiting.includes(own)) throw new Error(`${folder}/${own} was deleted`)
      const before = waiting[waiting.indexOf(own) - 1]
      if (before === undefined) return
      const { listener, event } = oneEvent()
      const there = await ignoreMissing.execute(() => zk.getData(`${folder}/${before}`, { watch: listener }))
      if (there) await event
    }
  }

  async function leave(): Promise<void> {
    for (const name of (await queue()).filter(isOwn))
      await ignoreMissing.execute(() => zk.delete(`${folder}/${name}`))
  }

  await retrying.execute(() => ignoreExisting.execute(() => zk.create(folder)))
  try {
    await timeout(wait, TimeoutStrategy.Aggressive).execute(async ({ signal }) => {
      const own = await retrying.execute(({ attempt }) => enter(attempt, signal), signal)
      await retrying.execute(() => turn(own, signal), signal)
    })
    return await task()
  } finally {
    await retrying.execute(leave)
  }
}

await using zk = await ZooKeeper.connect(process.env['ZOOKEEPER_HOSTS'] ?? 'localhost:2181')
console.log(await withLock(zk, '/recipe', 5000, async () => 'no one else was here'))
