import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { reapLater } from '../../apps/chaos/servers/reaper.js'
import { builtProgram } from '../support/built-program.js'
import { smallDisk, type SmallDisk } from '../support/file/small-disk.js'
import type { LockfileCall } from './lockfile-calls.process.js'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-lockfile-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
})

/** A process that calls the functions of lock files. */
class Caller {
  readonly #child: ChildProcess
  readonly #lines: NodeJS.AsyncIterator<string>

  /** @param notes folder of the notes that processes leave for others */
  constructor(enter: readonly string[] = [], notes = folder) {
    const [command, ...argv] = [...enter, process.execPath]
    const program = builtProgram('test/integration/lockfile-calls.process.js')
    const environment = { ...process.env, TMPDIR: notes, NODE_NO_WARNINGS: '1' }
    this.#child = spawn(command!, [...argv, program], { stdio: ['pipe', 'pipe', 2], env: environment })
    reapLater(this.#child)
    onTestFinished(() => void this.#child.kill('SIGKILL'))
    this.#lines = createInterface(this.#child.stdout!)[Symbol.asyncIterator]()
  }

  /** Calls a function. @returns its result, `held` for a function, `done` for undefined, or the code of its error */
  call(...call: LockfileCall): Promise<unknown> {
    this.#child.stdin!.write(`${JSON.stringify(call)}\n`)
    return this.printed()
  }

  /** Returns the next value that the process prints, such as a warning. */
  async printed(): Promise<unknown> {
    const { value, done } = await this.#lines.next()
    return done === true ? 'ended' : JSON.parse(value)
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await once(this.#child, 'exit')
  }
}

const BOTH_FORMS = [
  ['lock', 'unlock', 'check'],
  ['lockSync', 'unlockSync', 'checkSync'],
] as const

/** Mounts a small disk with a file, and starts a process that sees it. */
async function start(): Promise<{ disk: SmallDisk; file: string; caller: Caller }> {
  const disk = await smallDisk('1m,nr_inodes=20')
  const file = join(disk.folder, 'file')
  disk.run('touch', file)
  return { disk, file, caller: new Caller(disk.enter) }
}

function setMode(disk: SmallDisk, mode: 'ro' | 'rw'): void {
  disk.run('mount', '-o', `remount,${mode}`, disk.folder)
}

/** Fills the disk so that no other file or folder fits. */
function fill(disk: SmallDisk): void {
  disk.run('sh', '-c', 'n=0; while true > "$0/filler$n"; do n=$((n + 1)); done 2> /dev/null', disk.folder)
}

function free(disk: SmallDisk): void {
  disk.run('sh', '-c', 'rm "$0"/filler*', disk.folder)
}

describe.runIf(process.platform === 'linux')('a disk', () => {
  test.each(BOTH_FORMS)('that is full refuses %s until there is room', async (lock, unlock, check) => {
    const { disk, file, caller } = await start()
    fill(disk)
    expect(await caller.call(lock, file)).toBe('ENOSPC')
    expect(await caller.call(check, file)).toBe(false)
    expect(await caller.call(unlock, file)).toBe('ENOTACQUIRED')
    free(disk)
    expect(await caller.call(lock, file)).toBe('held')
    fill(disk)
    expect(await caller.call(check, file)).toBe(true)
    expect(await caller.call(lock, file)).toBe('ELOCKED')
    expect(await caller.call(unlock, file)).toBe('done')
    expect(await caller.call(lock, file)).toBe('held')
    expect(await caller.call('release')).toBe('done')
  })

  test.each(BOTH_FORMS)(
    'that is read-only refuses %s, and the release of a held lock, which is free when its process has ended',
    async (lock, unlock, check) => {
      const { disk, file, caller } = await start()
      const other = new Caller(disk.enter)
      setMode(disk, 'ro')
      expect(await caller.call(lock, file)).toBe('EROFS')
      expect(await caller.call(check, file)).toBe(false)
      expect(await caller.call(unlock, file)).toBe('ENOTACQUIRED')
      setMode(disk, 'rw')
      expect(await caller.call(lock, file)).toBe('held')
      setMode(disk, 'ro')
      expect(await caller.call(check, file)).toBe(true)
      expect(await caller.call(lock, file)).toBe('ELOCKED')
      expect(await caller.call(unlock, file)).toBe('EROFS')
      expect(await caller.call('release')).toBe('ERELEASED')
      expect(await other.call(check, file)).toBe(true)
      await caller.kill()
      expect(await other.call(check, file)).toBe(false)
      for (let time = 0; time < 2; time++) expect(await other.call(lock, file)).toBe('EROFS')
      setMode(disk, 'rw')
      expect(await other.call(lock, file)).toBe('held')
      expect(await other.call('release')).toBe('done')
    },
  )

  test('that is read-only for longer than stale compromises a lock', async () => {
    const { disk, file, caller } = await start()
    expect(await caller.call('lock', file, { stale: 2000 })).toBe('held')
    setMode(disk, 'ro')
    expect(await caller.printed()).toMatch(/^The lock of .* was compromised: EROFS: read-only file system/)
    expect(await caller.call('release')).toBe('ERELEASED')
    setMode(disk, 'rw')
    expect(await caller.call('lock', file, { stale: 2000 })).toBe('held')
  })

  test.each(BOTH_FORMS)('of a container gives %s a stale lock of its image', async (lock, _, check) => {
    const { disk, caller } = await start()
    const overlay = `cd "$0" && mkdir -p image/file.lock changes work container && touch image/file &&
      touch -d '1 hour ago' image/file.lock &&
      mount -t overlay -o lowerdir=image,upperdir=changes,workdir=work overlay container`
    disk.run('sh', '-c', overlay, disk.folder)
    const file = join(disk.folder, 'container/file')
    expect(await caller.call(lock, file)).toBe('held')
    expect(await caller.call('release')).toBe('done')
    expect(await caller.call(check, file)).toBe(false)
  })

  test.each(BOTH_FORMS)('for notes that is full or read-only does not keep %s from a lock', async lock => {
    const disk = await smallDisk('1m,nr_inodes=20')
    const file = join(folder, 'file')
    writeFileSync(file, '')
    const [holder, next] = [1, 2].map(() => new Caller(disk.enter, disk.folder)) as [Caller, Caller]
    fill(disk)
    expect(await holder.call(lock, file)).toBe('held')
    expect(await next.call(lock, file)).toBe('ELOCKED')
    expect(await holder.call('release')).toBe('done')
    free(disk)
    expect(await holder.call(lock, file)).toBe('held')
    await holder.kill()
    setMode(disk, 'ro')
    expect(await next.call(lock, file)).toBe('held')
    expect(await next.call('release')).toBe('done')
    expect(readdirSync(folder)).toEqual(['file'])
  })
})
