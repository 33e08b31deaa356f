import type { Clock } from '../../base/clock.js'
import type { CallErrors } from './call-errors.js'
import type { RedisLink } from './clients/redis-link.js'
import type { CodeCalls } from './code-calls.js'
import type { HeldLayout } from './held-layout.js'
import type { Names } from './names.js'

/** What the parts of an engine have in common. */
export interface EngineParts {
  readonly link: RedisLink
  readonly code: CodeCalls
  readonly clock: Clock
  readonly names: Names
  readonly layout: HeldLayout
  readonly errors: CallErrors
}
