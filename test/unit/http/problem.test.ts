import { expect, test } from 'vitest'
import { problemOf } from '../../../src/http/index.js'
import * as signalbox from '../../../src/index.js'
import { aboutTask, BusyError, LostError, TimedOutError, type SignalboxError } from '../../../src/errors.js'

type ErrorClass = new (message: string, context?: object) => SignalboxError

/** Every error class that is exported. */
const classes = Object.values<unknown>(signalbox).filter(
  (value): value is ErrorClass => typeof value === 'function' && value.prototype instanceof Error,
)

test('every error has a status, and its document tells nothing of the engine', () => {
  const statuses: Record<string, number> = {}
  for (const Class of classes) {
    if (Class.name === 'SignalboxError') continue
    const error = new Class('mutex a on redis://db.internal:6379', {
      key: 'a',
      engine: 'redis://db.internal',
    })
    const problem = problemOf(error)!
    expect(JSON.stringify(problem)).not.toContain('internal')
    expect(problem.document).toMatchObject({ type: 'about:blank', status: problem.status, code: error.code })
    statuses[error.code] = problem.status
  }
  expect(statuses).toEqual({
    BUSY: 409,
    TIMED_OUT: 503,
    ABORTED: 503,
    UNAVAILABLE: 503,
    INDETERMINATE: 504,
    LOST: 500,
    CONFLICT: 409,
    CLOSED: 503,
    DEADLOCK: 500,
    INVALID_ARGUMENT: 500,
  })
})

test('a document says whether the work was begun', () => {
  const problem = problemOf(aboutTask(new TimedOutError('too late'), false))
  expect(problem).toEqual({
    status: 503,
    headers: { 'Content-Type': 'application/problem+json', 'Retry-After': '1' },
    document: {
      type: 'about:blank',
      title: 'Service Unavailable',
      status: 503,
      detail: 'Its turn did not come in time.',
      code: 'TIMED_OUT',
      taskBegan: false,
    },
  })
  expect(problemOf(aboutTask(new LostError('lost'), true))!.document.taskBegan).toBe(true)
  expect(problemOf(new BusyError('busy'))!.document).not.toHaveProperty('taskBegan')
})

test('other errors are none of its business', () => {
  for (const error of [new Error('other'), undefined, 'text', { code: 'BUSY' }]) {
    expect(problemOf(error)).toBeUndefined()
  }
})
