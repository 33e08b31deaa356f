import { redis } from '../contract/redis-fixture.js'
import { adverseSuite } from '../contract/suite.js'

adverseSuite(redis)
