import node, { type BigIntStats } from 'node:fs'

/** The file system calls that locks make, with their results. */
interface Calls {
  mkdir(path: string): void
  rmdir(path: string): void
  stat(path: string): FolderState
  utimes(path: string, accessed: Date, modified: Date): void
  realpath(path: string): string
}

/** The part of the state of a folder that locks use. */
export interface FolderState {
  readonly mtime: Date
  readonly ino: number | bigint
  /** Only on the {@link disk}. */
  readonly dev?: bigint
  /** Only on the {@link disk}; 0 on file systems that do not store it. */
  readonly birthtimeNs?: bigint
}

/** The file system of the option `fs`: functions with callbacks, and their Sync forms. */
export type FileSystem = Readonly<Record<string, (...values: never[]) => unknown>>

type Done = (error: NodeJS.ErrnoException | null, result?: unknown) => void

/**
 * The file system of a lock without the option `fs`. Each call looks up its function, because others may replace it.
 */
export const disk: FileSystem = {
  mkdir: (path: string, done: Done) => node.mkdir(path, done),
  rmdir: (path: string, done: Done) => node.rmdir(path, done),
  stat: (path: string, done: Done) =>
    node.stat(path, { bigint: true }, (error, stats) => (error ? done(error) : done(null, stateOf(stats)))),
  utimes: (path: string, accessed: Date, modified: Date, done: Done) =>
    node.utimes(path, accessed, modified, done),
  // The native function is one call instead of one for each folder of the path. On systems other than Linux, it may
  // return another path: the case of letters as stored, or the share behind a drive. proper-lockfile would lock a
  // different path there.
  realpath: (path: string, done: Done) =>
    (process.platform === 'linux' ? node.realpath.native : node.realpath)(path, done),
  mkdirSync: (path: string) => node.mkdirSync(path),
  rmdirSync: (path: string) => node.rmdirSync(path),
  statSync: (path: string) => stateOf(node.statSync(path, { bigint: true })),
  utimesSync: (path: string, accessed: Date, modified: Date) => node.utimesSync(path, accessed, modified),
  realpathSync: (path: string) =>
    (process.platform === 'linux' ? node.realpathSync.native : node.realpathSync)(path),
}

/** Rounds the time as `stat` does without bigint numbers: the stored time may be a little earlier than the one set. */
function stateOf({ dev, ino, birthtimeNs, mtimeNs }: BigIntStats): FolderState {
  return { dev, ino, birthtimeNs, mtime: new Date(Math.round(Number(mtimeNs) / 1e6)) }
}

type Call = readonly [name: keyof Calls, ...values: unknown[]]

/** A procedure of file system calls, for {@link run} and {@link runSync}. */
export type Steps<T> = Generator<Call, T, unknown>

/** One call as a procedure. */
export function* call<N extends keyof Calls>(
  name: N,
  ...values: Parameters<Calls[N]>
): Steps<ReturnType<Calls[N]>> {
  return (yield [name, ...values]) as ReturnType<Calls[N]>
}

/** Executes a procedure: {@link run} or {@link runSync}. */
export type Run = <T>(steps: Steps<T>, fs: FileSystem) => T | Promise<T>

/** Executes a procedure with the functions with callbacks. */
export async function run<T>(steps: Steps<T>, fs: FileSystem): Promise<T> {
  let step = steps.next()
  while (step.done !== true) {
    const [name, ...values] = step.value
    let failure: unknown
    const result = await new Promise((resolve, reject) => {
      const done: Done = (error, value) => (error ? reject(error) : resolve(value))
      ;(fs[name] as (...values: unknown[]) => unknown)(...values, done)
    }).catch((error: unknown) => void (failure = error))
    step = failure === undefined ? steps.next(result) : steps.throw(failure)
  }
  return step.value
}

/** Executes a procedure with the Sync functions. */
export function runSync<T>(steps: Steps<T>, fs: FileSystem): T {
  let step = steps.next()
  while (step.done !== true) {
    const [name, ...values] = step.value
    let failure: unknown
    let result: unknown
    try {
      result = (fs[`${name}Sync`] as (...values: unknown[]) => unknown)(...values)
    } catch (error) {
      failure = error
    }
    step = failure === undefined ? steps.next(result) : steps.throw(failure)
  }
  return step.value
}

/** Returns the code of an error of the system. */
export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code
}

/** Creates an error with a code. */
export function errorOf(code: string, message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, cause === undefined ? undefined : { cause }), { code })
}
