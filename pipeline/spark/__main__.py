"""This module runs the queries of a data directory on Spark, by `python -m pipeline.spark`."""

import sys

from pipeline.spark.job import main

if __name__ == "__main__":  # Spark's workers import it under another name
    sys.exit(main())
