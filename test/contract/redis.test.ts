import { redis } from './redis-fixture.js'
import { contractSuite } from './suite.js'

contractSuite(redis)
