import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemClock, type Clock } from '../../../../src/base/clock.js'
import { Mailbox } from '../../../../src/engines/file/mailbox.js'
import { UnavailableError } from '../../../../src/base/errors.js'

/**
 * A clock whose timers run, but whose time stands still. However long this process is delayed, a connection that ends
 * seems to have ended just now.
 */
const clock: Clock = { now: () => 0, after: (...timer) => systemClock.after(...timer) }

let folder: string
let atEnd: (() => unknown)[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-mailbox-'))
  atEnd = []
})

afterEach(async () => {
  for (const end of atEnd.reverse()) await end()
  rmSync(folder, { recursive: true })
})

async function open(receive: (message: string) => void = () => {}, where = folder): Promise<Mailbox> {
  const mailbox = await Mailbox.open(where, receive, clock)
  atEnd.push(() => mailbox.close())
  return mailbox
}

/** Retries the check until it passes. */
function eventually(check: () => void): Promise<void> {
  return vi.waitFor(check, { interval: 2, timeout: 5000 })
}

/** Opens a mailbox, and collects its messages. */
async function openInbox(): Promise<{ mailbox: Mailbox; inbox: string[] }> {
  const inbox: string[] = []
  return { mailbox: await open(message => inbox.push(message)), inbox }
}

/** Another server at the address of a mailbox. */
class Impostor {
  readonly address: string
  /** All connections to it so far. */
  readonly connections: Socket[] = []
  readonly #server: Server

  constructor(address: string, accept: (socket: Socket) => void) {
    this.address = address
    this.#server = createServer(socket => {
      this.connections.push(socket)
      socket.on('error', () => {})
      accept(socket)
    })
  }

  static async listen(address: string, accept: (socket: Socket) => void): Promise<Impostor> {
    const impostor = new Impostor(address, accept)
    const bound = join(folder, `${address}-bound`)
    await new Promise<void>(resolve => impostor.#server.listen(bound, resolve))
    renameSync(bound, join(folder, address))
    atEnd.push(() => impostor.die())
    return impostor
  }

  /** Ends like a killed process: its connections close, and its file stays. */
  async die(): Promise<void> {
    for (const socket of this.connections) socket.destroy()
    await new Promise(resolve => this.#server.close(resolve))
  }
}

const someAddress = `${'0123456789ab'.repeat(2)}.box`

function socketName(letter: string, ending = 'box'): string {
  return `${letter.repeat(24)}.${ending}`
}

describe('removeOrphans', () => {
  it('removes old sockets of unknown dead boxes, and nothing else', async () => {
    const mailbox = await open()
    const another = await open()
    const dead = ['a', 'b', 'c'].map(letter => socketName(letter)).concat(socketName('d', 'new'), 'other.box')
    for (const name of dead) await (await Impostor.listen(name, () => {})).die()
    writeFileSync(join(folder, socketName('e')), '')
    const young = socketName('a')
    for (const name of readdirSync(folder)) if (name !== young) utimesSync(join(folder, name), 0, 0)
    await mailbox.removeOrphans([socketName('b')])
    const kept = [mailbox.address, another.address, young, socketName('b'), socketName('e'), 'other.box']
    expect(readdirSync(folder).sort()).toEqual(kept.sort())
  })
})

describe('open', () => {
  it('refuses a folder that is absent or no folder, with the reason', async () => {
    const absent = join(folder, 'absent')
    await expect(Mailbox.open(absent, () => {}, clock)).rejects.toThrow(UnavailableError)
    await expect(Mailbox.open(absent, () => {}, clock)).rejects.toThrow(absent)
    const file = join(folder, 'file')
    writeFileSync(file, '')
    await expect(Mailbox.open(file, () => {}, clock)).rejects.toThrow(UnavailableError)
  })

  it.each([
    [0o700, 0o600],
    [0o750, 0o600],
    [0o770, 0o660],
    [0o777, 0o660],
  ])('in a folder of mode %o lets only its owner and a group that may write connect', async (mode, given) => {
    chmodSync(folder, mode)
    const mailbox = await open()
    expect(statSync(join(folder, mailbox.address)).mode & 0o777).toBe(given)
  })
})

describe('send', () => {
  it('delivers any text: empty, with line ends and NUL, not ASCII, and 64 KB, and nothing longer', async () => {
    const { mailbox, inbox } = await openInbox()
    const sender = await open()
    void sender.send(mailbox.address, 'x'.repeat(64 * 1024 + 1))
    const messages = ['', 'a\nb\r\n\0', 'Weiche 7 – frei 🚂', 'x'.repeat(64 * 1024), 'last']
    for (const message of messages) {
      void sender.send(mailbox.address, message)
      await eventually(() => expect(inbox.at(-1)).toBe(message))
    }
    expect(inbox).toEqual(messages)
  })

  it('does nothing for an invalid address, and touches no other file', async () => {
    const sender = await open()
    const outside = await Impostor.listen('outside', () => {})
    for (const address of [
      '',
      '.',
      '..',
      'outside',
      `../${sender.address}`,
      `${someAddress}\0`,
      'x'.repeat(500),
    ]) {
      void sender.send(address, 'hello')
      sender.watch(address, () => expect.unreachable())()
      sender.remove(address)
    }
    void sender.send(someAddress, 'no receiver')
    await sleep(20)
    expect(outside.connections).toHaveLength(0)
    expect(existsSync(join(folder, 'outside'))).toBe(true)
  })

  it('replaces a broken connection, for what comes next', async () => {
    const lines: string[] = []
    const impostor = await Impostor.listen(someAddress, socket =>
      socket.on('data', chunk => lines.push(chunk.toString('latin1').slice(4))),
    )
    const sender = await open()
    void sender.send(someAddress, 'one')
    await eventually(() => expect(lines).toEqual(['one']))
    impostor.connections[0]!.destroy()
    await sleep(20)
    expect(impostor.connections).toHaveLength(1)
    void sender.send(someAddress, 'two')
    await eventually(() => expect(lines).toEqual(['one', 'two']))
    expect(impostor.connections).toHaveLength(2)
  })

  it('keeps little for a receiver that does not read', async () => {
    const impostor = await Impostor.listen(someAddress, socket => socket.pause())
    const sender = await open()
    void sender.send(someAddress, 'connect')
    await eventually(() => expect(impostor.connections).toHaveLength(1))
    const text = 'x'.repeat(10_000)
    for (let round = 0; round < 100; round++) {
      await sleep(1)
      for (let number = 0; number < 100; number++) void sender.send(someAddress, text)
    }
    let bytes = 0
    impostor.connections[0]!.on('data', chunk => (bytes += chunk.length)).resume()
    await eventually(() => expect(bytes).toBeGreaterThan(64 * 1024))
    await sleep(100)
    expect(bytes).toBeLessThan(1024 * 1024)
  })

  it('ends a connection to a receiver that has not read for long', async () => {
    const impostor = await Impostor.listen(someAddress, socket => socket.pause())
    const timers = new Set<() => void>()
    const after: Clock['after'] = (_, run) => {
      timers.add(run)
      return { cancel: () => void timers.delete(run) }
    }
    const sender = await Mailbox.open(folder, () => {}, { now: () => 0, after })
    atEnd.push(() => sender.close())
    void sender.send(someAddress, 'connect')
    await eventually(() => expect(impostor.connections).toHaveLength(1))
    const closed = new Promise(resolve => impostor.connections[0]!.on('close', resolve))
    for (let number = 0; number < 1000; number++) void sender.send(someAddress, 'x'.repeat(1000))
    await sleep(50)
    expect(timers.size).toBe(1)
    for (const run of timers) run()
    impostor.connections[0]!.resume()
    await closed
  })
})

describe('input of other processes', () => {
  async function raw(address: string): Promise<Socket> {
    const socket = connect(join(folder, address))
    socket.on('error', () => {})
    atEnd.push(() => socket.destroy())
    await new Promise(resolve => socket.once('connect', resolve))
    return socket
  }

  async function closed(socket: Socket): Promise<void> {
    if (!socket.closed) await new Promise(resolve => socket.resume().once('close', resolve))
  }

  it('ends the connection on invalid messages, and others continue', async () => {
    const { mailbox, inbox } = await openInbox()
    const sender = await open()
    for (const garbage of [
      'GET / HTTP/1.1\r\n\r\n',
      '\xff\xff\xff\xff',
      '\0\x01\0\x01',
      '\0\0\0\x01a\x7f\0\0\0',
    ]) {
      const socket = await raw(mailbox.address)
      socket.write(Buffer.from(garbage, 'latin1'))
      await closed(socket)
    }
    void sender.send(mailbox.address, 'still there')
    await eventually(() => expect(inbox).toEqual(['a', 'still there']))
  })

  it('is forgotten when the sender ends in the middle', async () => {
    const { mailbox, inbox } = await openInbox()
    const socket = await raw(mailbox.address)
    socket.end(Buffer.from('\0\0\0\x03one\0\0\0\x05thr', 'latin1'))
    await closed(socket)
    expect(inbox).toEqual(['one'])
  })
})

describe.runIf(process.platform === 'linux')('watch', () => {
  it('reports nothing about one that closed in order, was removed, or never existed', async () => {
    const watcher = await open()
    const dead = vi.fn()
    const closing = await open()
    watcher.watch(closing.address, dead)
    watcher.watch(someAddress, dead)
    const removed = 'ab'.repeat(12) + '.box'
    await (await Impostor.listen(removed, () => {})).die()
    watcher.remove(removed)
    expect(existsSync(join(folder, removed))).toBe(false)
    watcher.watch(removed, dead)
    await sleep(20)
    await closing.close()
    await sleep(50)
    expect(dead).not.toHaveBeenCalled()
  })

  it('does not count ended connections as proof, and tries again with growing pauses', async () => {
    const impostor = await Impostor.listen(someAddress, socket => socket.destroy())
    const watcher = await open()
    const dead = vi.fn()
    const stop = watcher.watch(someAddress, dead)
    await eventually(() => expect(impostor.connections.length).toBeGreaterThan(3))
    await sleep(300)
    expect(dead).not.toHaveBeenCalled()
    expect(impostor.connections.length).toBeLessThan(12)
    stop()
    const before = impostor.connections.length
    await sleep(300)
    expect(impostor.connections.length).toBeLessThanOrEqual(before + 1)
  })
})

it('reports nothing where a refused connection is no proof', async () => {
  await (await Impostor.listen(someAddress, () => {})).die()
  const watcher = await open()
  const dead = vi.fn()
  vi.spyOn(process, 'platform', 'get').mockReturnValue('darwin')
  const stop = watcher.watch(someAddress, dead)
  vi.restoreAllMocks()
  await sleep(50)
  expect(dead).not.toHaveBeenCalled()
  stop()
})
