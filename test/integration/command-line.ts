import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, vi } from 'vitest'
import { open, type Box } from '../../src/index.js'

/** The exit status and the output of a command. */
export interface End {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Generous, because other tests run at the same time. */
export const PATIENCE = { timeout: 50_000, interval: 20 }

/** Path of the built command. */
export const program = fileURLToPath(new URL('../../dist/apps/signalbox.js', import.meta.url))

/** A running command. */
export class Running {
  readonly #child: ChildProcess
  readonly #end = { stdout: '', stderr: '' }
  readonly ended: Promise<End>

  constructor(
    command: string,
    args: readonly string[],
    cwd: string,
    environment: Readonly<Record<string, string>>,
    input = '',
  ) {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, SIGNALBOX_URL: undefined, ...environment },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.#child = child
    child.stdin.on('error', () => undefined).end(input)
    child.stdout.setEncoding('utf8').on('data', (text: string) => (this.#end.stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#end.stderr += text))
    this.ended = new Promise((resolve, reject) => {
      child.on('error', reject).on('close', status => resolve({ status, ...this.#end }))
    })
  }

  get pid(): number {
    return this.#child.pid!
  }

  get stdout(): string {
    return this.#end.stdout
  }

  get stderr(): string {
    return this.#end.stderr
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }
}

/** A folder with locks of its own, boxes on it, and commands that use it. */
export class CommandPlace implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'signalbox-cli-'))
  readonly url: string
  readonly #boxes: Box[] = []
  readonly #running: Running[] = []

  constructor(url?: string) {
    this.url = url ?? `file:${this.folder}/locks`
  }

  async box(label: string): Promise<Box> {
    const box = await open(this.url, { label })
    this.#boxes.push(box)
    return box
  }

  /** Starts `signalbox`. */
  start(...args: readonly string[]): Running {
    return this.program(process.execPath, program, ...args)
  }

  /** Starts any program; a script finds the command in `$NODE $SIGNALBOX`. */
  program(command: string, ...args: readonly string[]): Running {
    const running = new Running(command, args, this.folder, {
      SIGNALBOX_URL: this.url,
      NODE: process.execPath,
      SIGNALBOX: program,
    })
    this.#running.push(running)
    return running
  }

  /** Runs `signalbox` to its end. */
  signalbox(...args: readonly string[]): Promise<End> {
    return this.start(...args).ended
  }

  /** Runs a script of bash to its end. */
  bash(script: string): Promise<End> {
    return this.program('bash', '-c', script).ended
  }

  /** Returns the lines that commands have written into a file. */
  lines(file: string): string[] {
    const path = join(this.folder, file)
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []
  }

  /** Waits until a file has at least this many lines, and returns them. */
  linesCome(file: string, count: number): Promise<string[]> {
    return vi.waitFor(() => {
      const lines = this.lines(file)
      expect(lines.length).toBeGreaterThanOrEqual(count)
      return lines
    }, PATIENCE)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const running of this.#running) running.kill('SIGKILL')
    await Promise.all(this.#running.map(({ ended }) => ended))
    await Promise.all(this.#boxes.map(box => box.close()))
    rmSync(this.folder, { recursive: true, force: true })
  }
}
