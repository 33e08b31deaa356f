import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { startZooKeeper } from '../support/servers/zookeeper.js'
import { open } from '../../src/index.js'
import { queued, soFar } from '../../packages/conformance/src/time.js'
import {
  Client,
  curator,
  curatorReader,
  curatorWriter,
  kazooAsItIs,
  kazooReader,
  kazooWriter,
  ourWriter,
  signalbox,
} from './client.js'
import { withOurs } from './meeting.js'
import { KEEPING, meetAtZooKeeper, ofOurs, partOf, readWriteLocks } from './zookeeper-meeting.js'

/** Maximum duration of a contest, in milliseconds. */
const LIMIT = 60_000
/** Waits for a lock that becomes free, and for a lock that does not, in milliseconds. */
const PATIENT = 30_000
const IMPATIENT = 100

const server = await startZooKeeper(KEEPING)

afterAll(() => server.kill())

describe.each(readWriteLocks)('the read-write locks of Signalbox and $library', ({ reader, writer }) => {
  test('are found to overlap without a bridge', async () => {
    const wanted = new Map([[`${ourWriter.kind} > ${writer.kind}`, 15]])
    // Longer than the other client waits between rounds, so that their rounds overlap.
    const result = await meetAtZooKeeper(server, [ourWriter, writer], wanted, LIMIT, { hold: 30 })
    expect(ofOurs(result).length).toBeGreaterThan(0)
  })

  test('with a bridge know a writer that becomes a reader for one', async () => {
    const { address } = server
    const key: string = randomUUID()
    await using box = await open(`zookeeper://${address}/place?bridge=true`)
    await using reading = await Client.start(reader, partOf(address, key))
    await using writing = await Client.start(writer, partOf(address, key))
    const grant = await box.readWriteLock(key).write.acquire()
    const readerTurn = reading.acquire(PATIENT)
    await queued(box, key, 1)
    const writerTurn = writing.acquire(PATIENT)
    await queued(box, key, 2)
    expect(await soFar(readerTurn)).toBe('pending')
    await grant.downgrade()
    expect(await readerTurn).toBe(true)
    expect(await reading.release()).toBe(true)
    expect(await soFar(writerTurn)).toBe('pending')
    await grant.release()
    expect(await writerTurn).toBe(true)
  })
})

const ALL = ['mutex', 'write', 'read', 'permits']
/** Claims that do not share with readers. */
const STRICT = ALL.filter(claim => claim !== 'read')

test.each([
  // A Lock of kazoo and an InterProcessMutex ignore readers, including those of their own library.
  { kind: kazooAsItIs, bridge: true, keptOutBy: STRICT, keepsOut: ALL },
  { kind: kazooWriter, bridge: true, keptOutBy: ALL, keepsOut: ALL },
  { kind: kazooReader, bridge: true, keptOutBy: STRICT, keepsOut: STRICT },
  { kind: curator, bridge: true, keptOutBy: STRICT, keepsOut: ALL },
  { kind: curatorWriter, bridge: true, keptOutBy: ALL, keepsOut: ALL },
  { kind: curatorReader, bridge: true, keptOutBy: STRICT, keepsOut: STRICT },
  { kind: curator, bridge: false, keptOutBy: STRICT, keepsOut: ALL },
  { kind: curatorWriter, bridge: false, keptOutBy: ['read'], keepsOut: ALL },
  { kind: curatorReader, bridge: false, keptOutBy: [], keepsOut: STRICT },
])(
  'each claim excludes $kind.kind, with a bridge: $bridge',
  async ({ kind, bridge, keptOutBy, keepsOut }) => {
    const { address } = server
    await using box = await open(`zookeeper://${address}/place?bridge=${bridge}`)
    const key: string = randomUUID()
    await using theirs = await Client.start(kind, partOf(address, key))
    const claims = {
      mutex: box.mutex(key),
      ...box.readWriteLock(key),
      permits: box.semaphore(key, { max: 2 }),
    }
    for (const [name, lock] of Object.entries(claims)) {
      const grant = await lock.acquire()
      const isOut = keptOutBy.includes(name)
      expect(await theirs.acquire(isOut ? IMPATIENT : PATIENT), name).toBe(!isOut)
      if (isOut) {
        const turn = theirs.acquire(PATIENT)
        await grant.release()
        expect(await turn).toBe(true)
      } else await grant.release()
      const tried = await lock.tryAcquire()
      expect(tried === undefined, name).toBe(keepsOut.includes(name))
      await tried?.release()
      const turn = tried ? undefined : lock.acquire({ wait: PATIENT })
      await theirs.release()
      await (await turn)?.release()
    }
  },
)

test('without a bridge, kazoo as it is does not see Signalbox', async () => {
  const clients = [signalbox, signalbox, kazooAsItIs, kazooAsItIs]
  const result = await meetAtZooKeeper(server, clients, withOurs([kazooAsItIs], 40), LIMIT)
  expect(ofOurs(result).length).toBeGreaterThan(0)
})
