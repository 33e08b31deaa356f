import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { OPCODE } from '../../src/call.js'
import { MAX_REPLY_SIZE } from '../../src/frames.js'
import { ConnectionLossError, SessionExpiredError, ZooKeeper, ZooKeeperError } from '../../src/index.js'
import type { JuteReader } from '../../src/jute-reader.js'
import { JuteWriter } from '../../src/jute-writer.js'
import { Random } from '../../../conformance/src/random.js'
import { memoryInUse } from '../../../../test/support/heap.js'
import { ScriptedServer, writeStat } from '../scripted-server.js'

const SESSION_TIMEOUT = 3000
const ROUNDS = 12
const CLIENTS = 12

/** A server with one node, which garbles, truncates or inflates its replies when the test says so. */
class GarblingServer extends ScriptedServer {
  readonly #random: Random
  /** Number of further replies to garble. */
  bad = 0
  /** Number of garbled replies. */
  count = 0

  constructor(seed: number) {
    super(SESSION_TIMEOUT)
    this.#random = new Random(seed)
  }

  protected answer(socket: Socket, request: JuteReader): void {
    const xid = request.int()
    const opcode = request.int()
    const writer = new JuteWriter().int(xid).long(9n).int(0)
    if (opcode === OPCODE.getData) writeStat(writer.bytes(Buffer.from('data')))
    if (opcode === OPCODE.getChildren2) writeStat(writer.list(['a', 'b'], name => writer.text(name)))
    if (opcode === OPCODE.create2) writeStat(writer.text('/created'))
    if (opcode === OPCODE.getAcl)
      writeStat(writer.list(['anyone'], id => writer.int(31).text('world').text(id)))
    if (opcode === OPCODE.getEphemerals) writer.list(['/a', '/b'], path => writer.text(path))
    if (opcode === OPCODE.multiRead) {
      writer
        .int(OPCODE.getChildren)
        .bool(false)
        .int(0)
        .list(['c'], name => writer.text(name))
      writer.int(-1).bool(false).int(-101).int(-101)
    }
    const frame = Buffer.from(writer.frame())
    if (this.bad === 0 || opcode < 0 || opcode === OPCODE.ping) return void socket.write(frame)
    this.bad--
    this.count++
    this.#spoil(socket, frame)
  }

  #spoil(socket: Socket, frame: Buffer): void {
    const at = this.#random.below(frame.length)
    switch (this.#random.below(8)) {
      case 0:
        return void socket.end(frame.subarray(0, at))
      // A client that received too great a length waits for the rest. The silence then ends the connection.
      case 1:
        return void socket.write(frame.subarray(0, at))
      case 2:
        frame.writeInt32BE([-1, MAX_REPLY_SIZE + 1, 2 ** 31 - 1, MAX_REPLY_SIZE][this.#random.below(4)]!, 0)
        return void socket.write(frame)
      case 3:
        return void socket.write(Buffer.concat([frame, frame]))
      default:
        for (let count = 1 + this.#random.below(5); count > 0; count--)
          frame[4 + this.#random.below(frame.length - 4)] = this.#random.below(256)
        socket.write(frame)
    }
  }
}

/** The requests, with checks of the parts that every accepted reply has. */
const ASKED: readonly ((zk: ZooKeeper) => Promise<void>)[] = [
  async zk => expect((await zk.create('/created')).path).toBeTypeOf('string'),
  async zk => expect((await zk.getData('/a')).data).toBeInstanceOf(Buffer),
  async zk => expect((await zk.getChildren('/a')).children).toBeInstanceOf(Array),
  async zk => expect((await zk.getAcl('/a')).acl).toBeInstanceOf(Array),
  async zk => expect(await zk.getEphemerals('/')).toBeInstanceOf(Array),
  async zk => expect(await zk.childrenOf(['/a', '/b'])).toHaveLength(2),
]

test('a server that garbles its replies costs a connection, and nothing waits forever or grows', async () => {
  const before = await memoryInUse()
  let spoilt = 0
  let lost = 0
  await Promise.all(
    Array.from({ length: CLIENTS }, async (_, seed) => {
      const server = new GarblingServer(seed)
      const address = await server.listen()
      let zk = await ZooKeeper.connect(address)
      for (let round = 0; round < ROUNDS; round++) {
        server.bad = 1
        try {
          await ASKED[round % ASKED.length]!(zk)
        } catch (error) {
          // A garbled reply can also be a valid error code.
          expect((error as Error).name).toMatch(/Error$/)
          expect(error).not.toBeInstanceOf(TypeError)
          expect(error).not.toBeInstanceOf(RangeError)
          if (error instanceof ConnectionLossError) lost++
        }
        server.bad = 0
        // The client may have learned of the end of its session, and then reports it. Otherwise it continues as before.
        const next = await zk.getData('/a').catch((error: unknown) => error)
        if (next instanceof SessionExpiredError) zk = await ZooKeeper.connect(address)
        else expect(next).toMatchObject({ data: Buffer.from('data') })
      }
      spoilt += server.count
      await zk.close()
      server.close()
    }),
  )
  expect(spoilt).toBe(CLIENTS * ROUNDS)
  expect(lost).toBeGreaterThan(5)
  const after = await memoryInUse()
  expect(after.heapUsed - before.heapUsed).toBeLessThan(8_000_000)
  expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(8_000_000)
}, 60_000)

/** A server that garbles its first reply. */
class UnclearServer extends ScriptedServer {
  readonly #random: Random

  constructor(random: Random) {
    super(SESSION_TIMEOUT)
    this.#random = random
  }

  protected override welcome(): Buffer {
    const frame = Buffer.from(super.welcome())
    for (let count = 1 + this.#random.below(3); count > 0; count--)
      frame[this.#random.below(frame.length)] = this.#random.below(256)
    return frame
  }

  protected answer(socket: Socket, request: JuteReader): void {
    socket.write(new JuteWriter().int(request.int()).long(9n).int(0).frame())
  }
}

test('connecting to a server that garbles its welcome succeeds or fails in bounded time', async () => {
  const random = new Random(7)
  let refused = 0
  const server = new UnclearServer(random)
  const address = await server.listen()
  const connect = async (): Promise<void> => {
    try {
      const zk = await ZooKeeper.connect(address, { timeout: 150 })
      await zk.close()
    } catch (error) {
      expect(error).toBeInstanceOf(ZooKeeperError)
      refused++
    }
  }
  await Promise.all(Array.from({ length: 100 }, connect))
  server.close()
  expect(refused).toBeGreaterThan(0)
}, 60_000)

/** A server that reports at the first request that its session has expired. */
class ForgetfulServer extends ScriptedServer {
  protected answer(socket: Socket, request: JuteReader): void {
    socket.write(new JuteWriter().int(request.int()).long(9n).int(-112).frame())
  }
}

test('a request that is rejected for a lost session was not applied; those behind it are indeterminate', async () => {
  const server = new ForgetfulServer(60_000)
  const zk = await ZooKeeper.connect(await server.listen())
  const [first, second, read] = await Promise.allSettled([zk.create('/a'), zk.create('/b'), zk.exists('/c')])
  expect(first).toMatchObject({ reason: expect.any(SessionExpiredError) as Error })
  expect(second).toMatchObject({ reason: expect.any(ConnectionLossError) as Error })
  expect(read).toMatchObject({ reason: expect.any(SessionExpiredError) as Error })
  await zk.close()
  server.close()
})
