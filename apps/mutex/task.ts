import { setTimeout as sleep } from 'node:timers/promises'
import type { MutexService } from './mutex-service.js'

/** The parts that all tasks of the demo share. */
export interface TaskParts {
  readonly print: (line: string) => void
  /** Duration of a task, in milliseconds. */
  readonly duration: number
}

/** Does the work, which only one task may do at a time. */
export async function work(task: number, { print, duration }: TaskParts): Promise<void> {
  print(`process start ${task}`)
  await sleep(duration)
  print(`process end ${task}`)
}

/** Does the work while it holds the mutex. */
export async function lockedWork(
  task: number,
  service: MutexService,
  key: string,
  parts: TaskParts,
): Promise<void> {
  const { print } = parts
  print(`wait ${task}`)
  await using _mutex = await service.waitForSingleObject(key)
  print(`Lock by ${task}`)
  await work(task, parts)
  print(`Unlock by ${task}`)
}
