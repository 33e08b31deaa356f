import node, { type BigIntStats } from 'node:fs'

/** The file system calls that locks make, and what each results in. */
interface Calls {
  mkdir(path: string): void
  rmdir(path: string): void
  stat(path: string): Found
  utimes(path: string, accessed: Date, modified: Date): void
  realpath(path: string): string
}

/** What locks use of the state of a folder. */
export interface Found {
  readonly mtime: Date
  readonly ino: number | bigint
  /** Only on the {@link disk}. */
  readonly dev?: bigint
  /** Only on the {@link disk}; 0 on file systems that do not store it. */
  readonly birthtimeNs?: bigint
}

/** A file system as the option `fs` gives it: functions with callbacks, and their Sync forms. */
export type FileSystem = Readonly<Record<string, (...values: never[]) => unknown>>

type Done = (error: NodeJS.ErrnoException | null, result?: unknown) => void

/** The file system of a lock without the option `fs`. Each call looks its function up, because others replace it. */
export const disk: FileSystem = {
  mkdir: (path: string, done: Done) => node.mkdir(path, done),
  rmdir: (path: string, done: Done) => node.rmdir(path, done),
  stat: (path: string, done: Done) =>
    node.stat(path, { bigint: true }, (error, stats) => (error ? done(error) : done(null, foundOf(stats)))),
  utimes: (path: string, accessed: Date, modified: Date, done: Done) =>
    node.utimes(path, accessed, modified, done),
  // The native function is one call instead of one for each folder of the path. It may give another path elsewhere than
  // on Linux: the letters as they are stored, or the share behind a drive. proper-lockfile would not meet it there.
  realpath: (path: string, done: Done) =>
    (process.platform === 'linux' ? node.realpath.native : node.realpath)(path, done),
  mkdirSync: (path: string) => node.mkdirSync(path),
  rmdirSync: (path: string) => node.rmdirSync(path),
  statSync: (path: string) => foundOf(node.statSync(path, { bigint: true })),
  utimesSync: (path: string, accessed: Date, modified: Date) => node.utimesSync(path, accessed, modified),
  realpathSync: (path: string) =>
    (process.platform === 'linux' ? node.realpathSync.native : node.realpathSync)(path),
}

/** The time is rounded as without bigint numbers: a time that is set may be stored a little earlier. */
function foundOf({ dev, ino, birthtimeNs, mtimeNs }: BigIntStats): Found {
  return { dev, ino, birthtimeNs, mtime: new Date(Math.round(Number(mtimeNs) / 1e6)) }
}

type Call = readonly [name: keyof Calls, ...values: unknown[]]

/** A procedure made of file system calls, for {@link run} and {@link runSync}. */
export type Steps<T> = Generator<Call, T, unknown>

/** One call as a procedure. */
export function* call<N extends keyof Calls>(
  name: N,
  ...values: Parameters<Calls[N]>
): Steps<ReturnType<Calls[N]>> {
  return (yield [name, ...values]) as ReturnType<Calls[N]>
}

/** Executes a procedure. The functions of the two forms, for callers that take either. */
export type Run = <T>(steps: Steps<T>, fs: FileSystem) => T | Promise<T>

/** Executes a procedure by the functions with callbacks. */
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

/** Executes a procedure by the Sync functions. */
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

/** The code of an error of the system. */
export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code
}

/** An error with a code. */
export function errorOf(code: string, message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, cause === undefined ? undefined : { cause }), { code })
}
