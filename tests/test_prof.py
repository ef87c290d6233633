import cProfile, pstats
from pathlib import Path
def test_x(train, tmp_path):
    train(tmp_path/"a","--steps",4)
    p=cProfile.Profile(); p.enable(); train(tmp_path/"b","--steps",4); p.disable()
    with open("/tmp/prof.txt","w") as f: pstats.Stats(p,stream=f).sort_stats("cumulative").print_stats(60)
