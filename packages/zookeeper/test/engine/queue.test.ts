import type { Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { Random } from '../../../conformance/src/random.js'
import { contendersOf } from '../../src/engine/contenders.js'
import { queueOf } from '../../src/engine/queue.js'
import { OPCODE } from '../../src/call.js'
import { ZooKeeper } from '../../src/index.js'
import type { JuteReader } from '../../src/jute-reader.js'
import { JuteWriter } from '../../src/jute-writer.js'
import { ScriptedServer, writeStat } from '../scripted-server.js'

const LAST = 2 ** 31 - 1
const NO_NODE = -101

/** A server that numbers new nodes from a list. */
class NumberingServer extends ScriptedServer {
  readonly #random = new Random(5)
  readonly #numbers: number[]
  readonly #nodes = new Map<string, { data: Buffer; czxid: bigint }>()
  #zxid = 0n
  /** Number of reads of data. */
  reads = 0

  constructor(numbers: readonly number[]) {
    super(10_000)
    this.#numbers = [...numbers]
  }

  protected answer(socket: Socket, request: JuteReader): void {
    const writer = new JuteWriter().int(request.int())
    const opcode = request.int()
    if (opcode === OPCODE.ping) return void socket.write(writer.long(this.#zxid).int(0).frame())
    if (opcode < 0) return void socket.end()
    const path = request.text()
    const node = this.#nodes.get(path)
    if (opcode === OPCODE.create2) this.#create(writer.long(++this.#zxid).int(0), path, request.bytes())
    else if (opcode === OPCODE.delete) writer.long(++this.#zxid).int(this.#nodes.delete(path) ? 0 : NO_NODE)
    else if (opcode === OPCODE.getChildren2) this.#list(writer.long(this.#zxid).int(0))
    else {
      this.reads++
      if (node) writeStat(writer.long(this.#zxid).int(0).bytes(node.data), node.czxid)
      else writer.long(this.#zxid).int(NO_NODE)
    }
    socket.write(writer.frame())
  }

  #create(writer: JuteWriter, prefix: string, data: Buffer): void {
    const number = this.#numbers.shift()!
    // Like Java's %010d, which counts the sign.
    const digits = number < 0 ? `-${String(-number).padStart(9, '0')}` : String(number).padStart(10, '0')
    this.#nodes.set(prefix + digits, { data, czxid: this.#zxid })
    writeStat(writer.text(prefix + digits), this.#zxid)
  }

  /** Lists names in random order, like servers. */
  #list(writer: JuteWriter): void {
    const names = [...this.#nodes.keys()].map(path => path.slice(path.lastIndexOf('/') + 1))
    const rolled = names.map(name => ({ name, roll: this.#random.below(1_000_000) }))
    rolled.sort((one, other) => one.roll - other.roll)
    writeStat(writer.list(rolled, ({ name }) => writer.text(name)))
  }
}

let server: NumberingServer

afterEach(() => server.close())

/** Creates nodes, and returns their names in the order of their creation. */
async function create(zk: ZooKeeper, count: number): Promise<string[]> {
  const names: string[] = []
  for (let index = 0; index < count; index++) {
    const guid = `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`
    const { path } = await zk.create(`/key/_c_${guid}-lock-`, '', { sequential: true })
    names.push(path.slice('/key/'.length))
  }
  return names
}

async function queue(zk: ZooKeeper): Promise<string[]> {
  const { children } = await zk.getChildren('/key')
  return (await queueOf(zk, '/key', children)).map(({ name }) => name)
}

test('beyond the last number and with negative numbers, the order is that of the transactions', async () => {
  server = new NumberingServer([LAST - 1, LAST, LAST, -LAST - 1, LAST, -LAST, -7, LAST])
  await using zk = await ZooKeeper.connect(await server.listen())
  const names = await create(zk, 8)
  expect(names[3]).toMatch(/-lock--2147483648$/)
  expect(names[6]).toMatch(/-lock--000000007$/)
  for (let round = 0; round < 5; round++) expect(await queue(zk)).toEqual(names)
  // The numbers alone give another order.
  expect(contendersOf(names.toReversed()).map(({ name }) => name)).not.toEqual(names)

  // A node that is deleted during the check is omitted.
  const { children } = await zk.getChildren('/key')
  await zk.delete(`/key/${names[2]!}`)
  const left = await queueOf(zk, '/key', children)
  expect(left.map(({ name }) => name)).toEqual(names.filter((_, index) => index !== 2))
})

test('a node that replaced another keeps its place', async () => {
  server = new NumberingServer([LAST, LAST, LAST])
  await using zk = await ZooKeeper.connect(await server.listen())
  const [first, second] = await create(zk, 2)
  const data = JSON.stringify({ session: 's', claims: [], number: 1 })
  const guid = '00000000-0000-4000-8000-00000000000f'
  const { path } = await zk.create(`/key/_c_${guid}-__READ__`, data, { sequential: true })
  await zk.delete(`/key/${first!}`)
  expect(await queue(zk)).toEqual([path.slice('/key/'.length), second])
})

test('below the last number only the names are read', async () => {
  server = new NumberingServer([0, 1, 2, LAST - 2, LAST - 1])
  await using zk = await ZooKeeper.connect(await server.listen())
  const names = await create(zk, 3)
  expect(await queue(zk)).toEqual(names)
  expect(server.reads).toBe(0)
})
