import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/base/clock.js'
import { Mailbox } from '../../src/engines/file/mailbox.js'
import { SocketFolder } from '../../src/engines/file/socket-folder.js'

const program = fileURLToPath(new URL('../../build/test/integration/mailbox.process.js', import.meta.url))

let root: string
let folder: string
let atEnd: (() => unknown)[]

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'signalbox-mailbox-'))
  folder = join(root, 'd'.repeat(150), 'd'.repeat(150))
  mkdirSync(folder, { recursive: true })
  atEnd = []
})

afterEach(async () => {
  for (const end of atEnd.reverse()) await end()
  rmSync(root, { recursive: true })
})

async function open(receive: (message: string) => void = () => {}): Promise<Mailbox> {
  const mailbox = await Mailbox.open(folder, receive, systemClock)
  atEnd.push(() => mailbox.close())
  return mailbox
}

/** Opens a mailbox, and collects its messages. */
async function openInbox(): Promise<{ mailbox: Mailbox; inbox: string[] }> {
  const inbox: string[] = []
  return { mailbox: await open(message => inbox.push(message)), inbox }
}

function eventually(check: () => void): Promise<void> {
  return vi.waitFor(check, { interval: 5, timeout: 20_000 })
}

interface Started {
  readonly process: ChildProcess
  readonly stdin: Writable
  /** The address of its mailbox. */
  readonly address: string
  /** Its exit status or signal. */
  readonly end: Promise<unknown>
}

/** @param limits shell commands that run first, for limits that a process can set only for its children */
async function start(mode: string, addresses: readonly string[] = [], limits = ''): Promise<Started> {
  const command = `${limits} exec "$0" "$@"`
  const child = spawn('sh', ['-c', command, process.execPath, program, mode, folder, ...addresses], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const end = once(child, 'exit').then(([status, signal]) => (signal ?? status) as unknown)
  atEnd.push(() => {
    // This signal also ends a stopped process.
    child.kill('SIGKILL')
    return end
  })
  return { process: child, stdin: child.stdin, address: await firstLine(child.stdout), end }
}

async function firstLine(output: Readable): Promise<string> {
  const [line] = (await once(output.setEncoding('utf8'), 'data')) as [string]
  return line.trim()
}

async function stop({ process }: Started): Promise<void> {
  process.kill('SIGSTOP')
  await eventually(() => expect(stateOf(process.pid!)).toBe('T'))
}

/** Returns the state of a process as one letter: R, S and D are running or waiting, T is stopped. */
function stateOf(pid: number): string | undefined {
  if (process.platform !== 'linux') return 'T'
  return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]
}

/** Opens more connections than the address can accept, so that some of them fail. */
async function crowdOf(size: number, address: string): Promise<Socket[]> {
  const sockets = SocketFolder.open(folder)
  const connections = Array.from({ length: size }, () => {
    const socket = connect(sockets.socketPath(address))
    socket.on('error', () => {}).resume()
    atEnd.push(() => socket.destroy())
    return socket
  })
  sockets.close()
  await eventually(() => expect(connections.some(socket => socket.destroyed)).toBe(true))
  return connections
}

/** Watches an address. Returns the number of reports of its death. */
function watch(mailbox: Mailbox, address: string): { told: number } {
  const result = { told: 0 }
  mailbox.watch(address, () => result.told++)
  return result
}

it('a process that has finished ends while its peers are stopped', async () => {
  const [stopped, full] = await Promise.all([start('listen'), start('listen')])
  await Promise.all([stop(stopped), stop(full)])
  await crowdOf(600, full.address)
  const finished = await start('flood', [stopped.address, full.address])
  await sleep(50)
  finished.stdin.write('now')
  expect(await finished.end).toBe(0)
})

describe('a receiver that is stopped', () => {
  it('does not block the sender or fill its memory, and continues afterwards', async () => {
    const { mailbox, inbox } = await openInbox()
    const receiver = await start('echo')
    const death = watch(mailbox, receiver.address)
    void mailbox.send(receiver.address, `${mailbox.address} first`)
    await eventually(() => expect(inbox).toHaveLength(1))
    await stop(receiver)
    // A write that waited for the receiver would never return.
    for (let number = 0; number < 20_000; number++) {
      void mailbox.send(receiver.address, `${mailbox.address} ${number} ${'x'.repeat(200)}`)
      if (number % 1000 === 0) await sleep(1)
    }
    await sleep(300)
    expect(inbox).toHaveLength(1)
    expect(death.told).toBe(0)
    receiver.process.kill('SIGCONT')
    await eventually(() => expect(inbox.length).toBeGreaterThan(100))
    void mailbox.send(receiver.address, `${mailbox.address} last`)
    await eventually(() => expect(inbox.at(-1)).toBe(`${mailbox.address} last`))
    const numbers = inbox.slice(1, -1).map(message => Number(message.split(' ')[1]))
    // Messages arrive in order and once. The buffers are bounded, so the newest messages are lost.
    expect(numbers).toEqual(numbers.map((_, index) => index))
    expect(numbers.length * 240).toBeLessThan(128 * 1024 + 64 * 1024)
    expect(death.told).toBe(0)
  })

  it.runIf(process.platform === 'linux')(
    'does not count as dead when it can take no further connection',
    async () => {
      const mailbox = await open()
      const receiver = await start('listen')
      await stop(receiver)
      // Exceeds the queue of connections that the receiver has yet to accept.
      await crowdOf(600, receiver.address)
      const death = watch(mailbox, receiver.address)
      void mailbox.send(receiver.address, 'lost')
      await sleep(300)
      expect(death.told).toBe(0)
      receiver.process.kill('SIGKILL')
      await eventually(() => expect(death.told).toBe(1))
    },
  )
})

it('does not count as dead without free descriptors, and takes messages when it has some again', async () => {
  const { mailbox, inbox } = await openInbox()
  const receiver = await start('echo', [], 'ulimit -n 50;')
  const connections = await crowdOf(100, receiver.address)
  const death = watch(mailbox, receiver.address)
  await sleep(300)
  expect(death.told).toBe(0)
  for (const socket of connections) socket.destroy()
  await vi.waitFor(
    () => {
      void mailbox.send(receiver.address, `${mailbox.address} at last`)
      expect(inbox).toContain(`${mailbox.address} at last`)
    },
    { interval: 50, timeout: 20_000 },
  )
  expect(death.told).toBe(0)
})

it.runIf(process.platform === 'linux')(
  'the death of a stopped process is known, also when it never accepted the connection',
  async () => {
    const mailbox = await open()
    const accepted = await start('listen')
    const unaccepted = await start('listen')
    const first = watch(mailbox, accepted.address)
    await sleep(50)
    await Promise.all([stop(accepted), stop(unaccepted)])
    const second = watch(mailbox, unaccepted.address)
    await sleep(300)
    expect([first.told, second.told]).toEqual([0, 0])
    accepted.process.kill('SIGKILL')
    unaccepted.process.kill('SIGKILL')
    await eventually(() => expect([first.told, second.told]).toEqual([1, 1]))
  },
)
