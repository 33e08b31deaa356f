import { expect, test } from 'vitest'
import { problemOf } from '../../../src/http/index.js'
import * as signalbox from '../../../src/index.js'
import {
  withTaskBegan,
  BusyError,
  lostBeforeEnd,
  LostError,
  TimedOutError,
  type SignalboxError,
} from '../../../src/base/errors.js'

type ErrorClass = new (message: string, context?: object) => SignalboxError

/** All exported error classes. */
const classes = Object.values<unknown>(signalbox).filter(
  (value): value is ErrorClass => typeof value === 'function' && value.prototype instanceof Error,
)

test('every error has a status, and its document does not reveal the engine', () => {
  for (const Class of classes) {
    if (Class.name === 'SignalboxError') continue
    const error = new Class('mutex a on redis://db.internal:6379', {
      key: 'a',
      engine: 'redis://db.internal',
    })
    const problem = problemOf(error)!
    expect(JSON.stringify(problem)).not.toContain('internal')
    expect(problem.document).toMatchObject({ type: 'about:blank', status: problem.status, code: error.code })
  }
})

/**
 * By code: the status, whether there is a `Retry-After`, and whether the text says that the operation may have been
 * done.
 */
const TABLE: Record<string, readonly [false: string, unknown: string, true: string]> = {
  BUSY: ['409 retry', '409 retry', '409 maybe'],
  TIMED_OUT: ['503 retry', '503 retry', '503 maybe'],
  ABORTED: ['503', '503', '503 maybe'],
  UNAVAILABLE: ['503 retry', '503 retry', '503 maybe'],
  INDETERMINATE: ['503 retry', '504 maybe', '504 maybe'],
  LOST: ['503 retry', '500 maybe', '500 maybe'],
  CONFLICT: ['409 retry', '409 retry', '409 retry'],
  CLOSED: ['503 retry', '503 retry', '503 maybe'],
  DEADLOCK: ['500', '500', '500 maybe'],
  INVALID_ARGUMENT: ['500', '500', '500 maybe'],
}

test.each(
  classes
    .filter(({ name }) => name !== 'SignalboxError')
    .flatMap(Class => [false, undefined, true].map(began => [Class.name, began, Class] as const)),
)(
  'a %s with a taskBegan of %s has the status, the Retry-After and the text of the table',
  (_, began, Class) => {
    const error = new Class('text', {})
    const { status, headers, document } = problemOf(
      began === undefined ? error : withTaskBegan(error, began),
    )!
    const parts = [
      String(status),
      ...(headers['Retry-After'] === '1' ? ['retry'] : []),
      ...(/may have been done/.test(document.detail) ? ['maybe'] : []),
    ]
    const place = began === undefined ? 1 : began ? 2 : 0
    expect(parts.join(' ')).toBe(TABLE[error.code]![place])
    expect(document.status).toBe(status)
    expect(document.taskBegan).toBe(began)
  },
)

test('a task that ended although its grant was lost was done', () => {
  const { status, headers, document } = problemOf(lostBeforeEnd(new LostError('lost'), 'paid'))!
  expect([status, headers['Retry-After'], document.taskBegan]).toEqual([500, undefined, true])
  expect(document.detail).toBe('The work was done, but its lock was lost before it ended.')
})

test('a document says whether the work was begun', () => {
  const problem = problemOf(withTaskBegan(new TimedOutError('too late'), false))
  expect(problem).toEqual({
    status: 503,
    headers: { 'Content-Type': 'application/problem+json', 'Retry-After': '1' },
    document: {
      type: 'about:blank',
      title: 'Service Unavailable',
      status: 503,
      detail: 'The request timed out waiting for its turn.',
      code: 'TIMED_OUT',
      taskBegan: false,
    },
  })
  expect(problemOf(withTaskBegan(new LostError('lost'), true))!.document.taskBegan).toBe(true)
  expect(problemOf(new BusyError('busy'))!.document).not.toHaveProperty('taskBegan')
})

test('other errors are ignored', () => {
  for (const error of [new Error('other'), undefined, 'text', { code: 'BUSY' }]) {
    expect(problemOf(error)).toBeUndefined()
  }
})
