import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach } from 'vitest'
import { asRoot } from './namespaces.js'

/**
 * A file system of a few megabytes, which can be filled. Only processes that are started with `enter` see it, because
 * it is in a mount namespace of its own. This namespace ends with the test process, even if that is killed.
 */
export class SmallDisk {
  /** The mount point for those processes. */
  readonly folder = mkdtempSync(join(tmpdir(), 'signalbox-disk-'))
  readonly #keeper: ChildProcess
  readonly #alone: boolean

  /** @param size as mount takes it: `4m`, or with another option: `4m,nr_inodes=20`. */
  constructor(size: string) {
    this.#alone = process.getuid!() !== 0
    const command = 'mount -t tmpfs -o size="$1" none "$0" && echo mounted && exec cat'
    this.#keeper = spawn('unshare', [...asRoot(), '--mount', 'sh', '-c', command, this.folder, size], {
      stdio: ['pipe', 'pipe', 'pipe'],
    })
  }

  /** @throws Error with the output of the system if the disk can't be mounted */
  async mounted(): Promise<void> {
    let complaint = ''
    this.#keeper.stderr!.on('data', (text: Buffer) => (complaint += text.toString()))
    const failed = once(this.#keeper, 'close').then(() => {
      throw new Error(`this test needs a file system of its own, and none can be mounted here: ${complaint}`)
    })
    await Promise.race([once(this.#keeper.stdout!, 'data'), failed])
    failed.catch(() => undefined)
  }

  /** The command that starts a process that sees the disk. */
  get enter(): string[] {
    const user = this.#alone ? ['--user', '--preserve-credentials'] : []
    return ['nsenter', `--target=${String(this.#keeper.pid)}`, ...user, '--mount']
  }

  /** Leaves no byte free. */
  fill(): void {
    const [command, ...argv] = this.enter
    // The command fails because the disk is full.
    spawnSync(command!, [...argv, 'sh', '-c', 'cat /dev/zero >> "$0/filler"', this.folder])
  }

  /** Frees this number of bytes, or all that `fill` has used. */
  free(bytes?: number): void {
    if (bytes === undefined) this.run('rm', `${this.folder}/filler`)
    else this.run('truncate', `--size=-${bytes}`, `${this.folder}/filler`)
  }

  /** Runs a command that sees the disk. */
  run(...argv: string[]): void {
    const [command, ...rest] = [...this.enter, ...argv]
    execFileSync(command!, rest)
  }

  async end(): Promise<void> {
    this.#keeper.kill('SIGKILL')
    if (this.#keeper.exitCode === null && this.#keeper.signalCode === null) await once(this.#keeper, 'exit')
    rmSync(this.folder, { recursive: true })
  }
}

const disks: SmallDisk[] = []

/** A small disk that ends with the test. */
export async function smallDisk(size: string): Promise<SmallDisk> {
  const disk = new SmallDisk(size)
  disks.push(disk)
  await disk.mounted()
  return disk
}

afterEach(async () => {
  for (const disk of disks.splice(0)) await disk.end()
})
