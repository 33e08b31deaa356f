import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { OPCODE } from '../../../src/zookeeper/call.js'
import { ProtocolError } from '../../../src/zookeeper/errors.js'
import { Frames, LONGEST_REPLY } from '../../../src/zookeeper/frames.js'
import { ConnectionLossError, SessionExpiredError, ZooKeeper } from '../../../src/zookeeper/index.js'
import type { JuteReader } from '../../../src/zookeeper/jute-reader.js'
import { JuteWriter } from '../../../src/zookeeper/jute-writer.js'
import { Random } from '../../../src/conformance/random.js'
import { memoryInUse } from '../../heap.js'
import { ScriptedServer, writeStat } from './scripted-server.js'

const SESSION_TIMEOUT = 600
const ROUNDS = 8
const CLIENTS = 12

/** A server that knows one node, and garbles, cuts or blows up what it answers when it is told to. */
class GarblingServer extends ScriptedServer {
  readonly #random: Random
  /** How many answers from now on are bad ones. */
  bad = 0
  /** How many were. */
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
      // Whose length says too much waits for the rest; the silence ends the connection.
      case 1:
        return void socket.write(frame.subarray(0, at))
      case 2:
        frame.writeInt32BE([-1, LONGEST_REPLY + 1, 2 ** 31 - 1, LONGEST_REPLY][this.#random.below(4)]!, 0)
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

test('a server that garbles its answers costs a connection, and nothing waits for ever or grows', async () => {
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
          if (round % 3 === 0) expect((await zk.create('/created')).path).toBeTypeOf('string')
          else if (round % 3 === 1) expect((await zk.getData('/a')).data).toBeInstanceOf(Buffer)
          else expect((await zk.getChildren('/a')).children).toBeInstanceOf(Array)
        } catch (error) {
          // What was garbled can also be a number that stands for a refusal.
          expect((error as Error).name).toMatch(/Error$/)
          expect(error).not.toBeInstanceOf(TypeError)
          expect(error).not.toBeInstanceOf(RangeError)
          if (error instanceof ConnectionLossError) lost++
        }
        server.bad = 0
        // It may have heard of an end of its session, and then says so; else it goes on as if nothing had been.
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

test('a stream of anything is cut into frames or refused, and no more is kept than came', () => {
  const random = new Random(99)
  let refused = 0
  for (let round = 0; round < 400; round++) {
    const frames = new Frames()
    let given = 0
    let found = 0
    try {
      for (let chunk = 0; chunk < 20; chunk++) {
        const bytes = Buffer.from(
          Array.from({ length: random.below(64) }, () => (random.below(3) ? 0 : random.below(256))),
        )
        given += bytes.length
        for (const frame of frames.push(bytes)) found += 4 + frame.length
      }
    } catch (error) {
      expect(error).toBeInstanceOf(ProtocolError)
      refused++
    }
    expect(found).toBeLessThanOrEqual(given)
  }
  expect(refused).toBeGreaterThan(40)
})
