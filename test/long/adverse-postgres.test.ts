import { postgres } from '../contract/postgres-fixture.js'
import { adverseSuite } from '../contract/suite.js'

// An operation takes several round trips, and its box is slower than the claim window.
const TOO_SLOW = [
  'a box 150 ms away > gets at least half of its fair share of a hot key',
  'a box 400 ms away > gets at least half of its fair share of a hot key',
  'a box 400 ms away > is served in order of arrival',
  'of requests: the box gets turns of a hot key, and no lease is lost',
]

adverseSuite(postgres, TOO_SLOW)
