import { resolve } from 'node:path'
import { systemClock } from 'signalbox/engine'
import { call, disk, errorOf, run, runSync, type FileSystem, type Run, type Steps } from './file-system.js'
import { HeldLock, heldLocks } from './held-lock.js'
import { createFolder, isHeld, type CreatedFolder, type LockRequest } from './lock-folder.js'
import {
  fileSystemOf,
  folderOf,
  retriesOf,
  staleOf,
  updateOf,
  type CheckOptions,
  type LockOptions,
  type UnlockOptions,
} from './options.js'
import { retryDelays } from './retry-delays.js'
import { isAwaited, pause, WaitingCaller } from './waiting.js'

/**
 * Locks a file against other processes that use this function or proper-lockfile, on this machine and others.
 * @returns a function that releases the lock. It rejects with an error `ERELEASED` when the lock was released before,
 * or is compromised. In the second case, the `cause` of the error has the code `ECOMPROMISED`.
 * @throws Error (the promise is rejected) `ELOCKED` when the lock is held and no retries are left; `ENOENT` when the
 * file does not exist, unless `realpath` is false; other errors of the file system
 * @example
 * const release = await lock('data.json', { retries: 5 })
 * try {
 *   await change('data.json')
 * } finally {
 *   await release()
 * }
 */
export async function lock(file: string, options?: LockOptions): Promise<() => Promise<void>> {
  // Callers of proper-lockfile may pass null.
  options ??= {}
  const fs = fileSystemOf(options)
  const wanted = wantedOf(await run(canonical(file, options), fs), options)
  const held = await acquire(wanted, options)
  return () => releaseWritten(held, fs)
}

/**
 * Releases a lock of this process on a file. The function that {@link lock} returns does the same.
 * @throws Error (the promise is rejected) `ENOTACQUIRED` when this process has no lock on it; errors of the file system
 */
export async function unlock(file: string, options?: UnlockOptions): Promise<void> {
  options ??= {}
  const fs = fileSystemOf(options)
  await releaseWritten(find(await run(canonical(file, options), fs), options), fs)
}

/**
 * Resolves with whether a file is locked. A lock whose holder is dead, or that is stale, does not count.
 * @throws errors of the file system (the promise is rejected)
 */
export async function check(file: string, options?: CheckOptions): Promise<boolean> {
  options ??= {}
  const fs = fileSystemOf(options)
  return run(isHeld(wantedOf(await run(canonical(file, options), fs), options)), fs)
}

/**
 * Synchronous form of {@link lock}.
 * @throws Error as for {@link lock}; `ESYNC` when there are retries
 */
export function lockSync(file: string, options?: LockOptions): () => void {
  options ??= {}
  if ((retriesOf(options).retries ?? 0) > 0) throw errorOf('ESYNC', 'Cannot use retries with the sync api')
  const fs = fileSystemOf(options)
  const wanted = wantedOf(runSync(canonical(file, options), fs), options)
  const held = keep(wanted, runSync(createFolder(wanted), fs), options, runSync)
  return () => runSync(held.release(fs), fs)
}

/** Synchronous form of {@link unlock}. @throws Error as for {@link unlock} */
export function unlockSync(file: string, options?: UnlockOptions): void {
  options ??= {}
  const fs = fileSystemOf(options)
  runSync(find(runSync(canonical(file, options), fs), options).release(fs), fs)
}

/** Synchronous form of {@link check}. @throws Error as for {@link check} */
export function checkSync(file: string, options?: CheckOptions): boolean {
  options ??= {}
  const fs = fileSystemOf(options)
  return runSync(isHeld(wantedOf(runSync(canonical(file, options), fs), options)), fs)
}

function* canonical(file: string, { realpath = true }: UnlockOptions): Steps<string> {
  return realpath ? yield* call('realpath', file) : resolve(file)
}

function wantedOf(file: string, options: CheckOptions): LockRequest {
  const folder = folderOf(file, options)
  return {
    file,
    folder,
    stale: staleOf(options),
    fs: fileSystemOf(options),
    isHeldHere: note => heldLocks().get(folder)?.note === note,
  }
}

function keep(wanted: LockRequest, made: CreatedFolder, options: LockOptions, run: Run): HeldLock {
  const onCompromised = options.onCompromised ?? ((error: Error) => warn(wanted.file, error))
  return new HeldLock({ ...wanted, run, update: updateOf(options, wanted.stale), onCompromised }, made)
}

function warn(file: string, { message }: Error): void {
  process.emitWarning(`The lock of ${file} was compromised: ${message}`, {
    type: 'LockfileWarning',
    code: 'ECOMPROMISED',
  })
}

/** Retries after each delay, and whenever it is woken, until it has the lock. @throws the error of the last attempt */
async function acquire(wanted: LockRequest, options: LockOptions): Promise<HeldLock> {
  const { folder, fs } = wanted
  const retries = retriesOf(options)
  const deadline = systemClock.now() + (retries.maxRetryTime || Infinity)
  const [firstDelay] = retryDelays(retries)
  const joinsQueue = fs === disk && firstDelay !== undefined
  let caller = joinsQueue && isAwaited(folder) ? new WaitingCaller(folder) : undefined
  let failure: unknown
  const attempt = async (): Promise<HeldLock | undefined> => {
    try {
      return keep(wanted, await run(createFolder(wanted), fs), options, run)
    } catch (error) {
      failure = error
      return undefined
    }
  }
  try {
    // Callers that already wait come first.
    let held = caller === undefined ? await attempt() : undefined
    for (const delay of retryDelays(retries)) {
      if (held !== undefined || (failure !== undefined && systemClock.now() >= deadline)) break
      if (joinsQueue) caller ??= new WaitingCaller(folder)
      const end = systemClock.now() + delay
      do {
        await pause(end - systemClock.now(), retries.unref !== true, caller)
        held = await attempt()
      } while (held === undefined && systemClock.now() < end)
    }
    if (held !== undefined) return held
    throw failure
  } finally {
    caller?.leave()
  }
}

async function releaseWritten(held: HeldLock, fs: FileSystem): Promise<void> {
  await held.written()
  await run(held.release(fs), fs)
}

/** @throws Error `ENOTACQUIRED` */
function find(file: string, options: UnlockOptions): HeldLock {
  const locks = heldLocks()
  let held = locks.get(folderOf(file, options))
  // proper-lockfile finds a lock by its file alone.
  if (held?.file !== file) held = [...locks.values()].findLast(lock => lock.file === file)
  if (held === undefined) throw errorOf('ENOTACQUIRED', 'Lock is not acquired/owned by you')
  return held
}
